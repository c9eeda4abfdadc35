//! Reads a status in which another writer stored invalid values. A definition that is applied later does not change what
//! is stored, so a stored status may be any JSON.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::ProgressStatus;
use super::status::{FailureRecord, JobCondition, JobStatus, Recovery, ReplicaStatus};

/// The fields of a status that every kind has, as on the wire.
pub const STATUS_FIELDS: [&str; 13] = [
    "conditions",
    "replicaStatuses",
    "startTime",
    "completionTime",
    "lastReconcileTime",
    "restartCount",
    "ready",
    "waitingReason",
    "waitingSince",
    "failure",
    "failureHistory",
    "progress",
    "recovery",
];

/// The maximum count that is accepted or written. The sum of four such counts fits an `i32`.
pub(crate) const MAX_COUNT: i32 = 500_000_000;

/// The maximum size of a text in a status, in bytes. Whole objects may have 1.5 MB.
const MAX_TEXT_BYTES: usize = 64 * 1_024;

/// The range of times that clients in Go can decode, in seconds since 1970.
const GO_TIME_SECONDS: std::ops::Range<i64> = -62_135_596_800..253_370_764_800;

/// The readable part of a status.
#[derive(Clone, Debug)]
pub struct Salvaged {
    /// The status without the invalid values.
    pub status: JobStatus,
    /// The fields that hold invalid values; `status` if the status is not an object.
    pub unsound: Vec<&'static str>,
}

impl JobStatus {
    /// Reads a stored status. Values that are invalid are left out.
    pub fn salvage(stored: &Value) -> Salvaged {
        let mut unsound = Vec::new();
        if !stored.is_object() && !stored.is_null() {
            unsound.push("status");
        }
        let mut read = Reader {
            status: stored,
            unsound,
        };
        let status = Self {
            conditions: read.field("conditions", |s| s.conditions, conditions),
            replica_statuses: read.field("replicaStatuses", |s| s.replica_statuses, replica_statuses),
            start_time: read.field("startTime", |s| s.start_time, |_| None),
            completion_time: read.field("completionTime", |s| s.completion_time, |_| None),
            last_reconcile_time: read.field("lastReconcileTime", |s| s.last_reconcile_time, |_| None),
            restart_count: read.field("restartCount", |s| s.restart_count, |_| 0),
            ready: read.field("ready", |s| s.ready, |_| String::new()),
            waiting_reason: read.field("waitingReason", |s| s.waiting_reason, |_| String::new()),
            waiting_since: read.field("waitingSince", |s| s.waiting_since, |_| None),
            failure: read.field("failure", |s| s.failure, failure),
            failure_history: read.field("failureHistory", |s| s.failure_history, failures),
            progress: read.field("progress", |s| s.progress, progress),
            recovery: read.field("recovery", |s| s.recovery, recovery),
        };
        let mut unsound = read.unsound;
        let mended = status.mended();
        let changed = status.differing_fields(&mended);
        unsound.extend(
            changed
                .filter(|field| !unsound.contains(field))
                .collect::<Vec<_>>(),
        );
        Salvaged {
            status: mended,
            unsound,
        }
    }

    /// Returns true if every value is one that a controller writes.
    pub fn is_sound(&self) -> bool {
        self.mended() == *self
    }

    /// Returns the fields that differ from `other`.
    fn differing_fields(&self, other: &Self) -> impl Iterator<Item = &'static str> {
        let differs = [
            self.conditions != other.conditions,
            self.replica_statuses != other.replica_statuses,
            self.start_time != other.start_time,
            self.completion_time != other.completion_time,
            self.last_reconcile_time != other.last_reconcile_time,
            self.restart_count != other.restart_count,
            self.ready != other.ready,
            self.waiting_reason != other.waiting_reason,
            self.waiting_since != other.waiting_since,
            self.failure != other.failure,
            self.failure_history != other.failure_history,
            self.progress != other.progress,
            self.recovery != other.recovery,
        ];
        STATUS_FIELDS
            .into_iter()
            .zip(differs)
            .filter_map(|(field, differs)| differs.then_some(field))
    }

    /// Returns the status without values that decode but cannot be true.
    fn mended(&self) -> Self {
        let mut status = self.clone();
        let mut types = BTreeSet::new();
        // The first condition of a type decides.
        status.conditions.retain(|c| types.insert(c.type_.clone()));
        for condition in &mut status.conditions {
            mend_time(&mut condition.last_update_time);
            mend_time(&mut condition.last_transition_time);
        }
        for role in status.replica_statuses.values_mut() {
            mend_count(&mut role.active);
            mend_count(&mut role.succeeded);
            mend_count(&mut role.failed);
        }
        mend_time(&mut status.start_time);
        mend_time(&mut status.completion_time);
        mend_time(&mut status.last_reconcile_time);
        mend_time(&mut status.waiting_since);
        mend_count(&mut status.restart_count);
        for failure in status.failure.iter_mut().chain(&mut status.failure_history) {
            mend_time(&mut failure.time);
        }
        if let Some(progress) = &mut status.progress {
            mend_time(&mut progress.at);
        }
        let recovery = &mut status.recovery;
        mend_count(&mut recovery.job);
        for counts in [
            &mut recovery.roles,
            &mut recovery.replicas,
            &mut recovery.retries,
            &mut recovery.in_place,
            &mut recovery.started,
            &mut recovery.sizes,
        ] {
            counts.retain(|_, count| is_count(*count));
        }
        for backoff in recovery.backoff.values_mut() {
            mend_count(&mut backoff.failures);
            mend_time(&mut backoff.until);
        }
        recovery.restarted.retain(is_time);
        let uncounted = recovery.uncounted.values_mut();
        uncounted.for_each(|times| times.retain(is_time));
        recovery
            .completed
            .retain(|_, indexes| indexes.len() <= MAX_TEXT_BYTES);
        let progress = status.progress.iter_mut();
        let texts = progress.flat_map(|progress| [&mut progress.summary, &mut progress.line]);
        for text in texts.chain([&mut status.ready, &mut status.waiting_reason]) {
            if text.len() > MAX_TEXT_BYTES {
                text.clear();
            }
        }
        status
    }
}

fn is_count(count: i32) -> bool {
    (0..=MAX_COUNT).contains(&count)
}

fn mend_count(count: &mut i32) {
    if !is_count(*count) {
        *count = 0;
    }
}

fn is_time(time: &Time) -> bool {
    is_writable(time.0)
}

/// Returns true for a time that may be stored in a status.
pub(crate) fn is_writable(time: Timestamp) -> bool {
    GO_TIME_SECONDS.contains(&time.as_second())
}

fn mend_time(time: &mut Option<Time>) {
    if time.as_ref().is_some_and(|time| !is_time(time)) {
        *time = None;
    }
}

/// Reads a status field by field.
struct Reader<'a> {
    status: &'a Value,
    /// The fields that did not decode.
    unsound: Vec<&'static str>,
}

impl Reader<'_> {
    /// Returns a field as it decodes in a status that has only this field. If it does not decode, returns the part of
    /// it that `salvage` can read.
    fn field<T: Default>(
        &mut self,
        name: &'static str,
        select: impl Fn(JobStatus) -> T,
        salvage: impl Fn(&Value) -> T,
    ) -> T {
        let Some(value) = self.status.get(name).filter(|value| !value.is_null()) else {
            return T::default();
        };
        let alone = Value::Object(Map::from_iter([(name.to_owned(), value.clone())]));
        match JobStatus::deserialize(alone) {
            Ok(status) => select(status),
            Err(_) => {
                self.unsound.push(name);
                salvage(value)
            }
        }
    }
}

/// Returns the value as this type, if it decodes.
fn part<T: DeserializeOwned>(value: &Value) -> Option<T> {
    T::deserialize(value).ok()
}

/// Returns the value of a field as this type, if the field exists and decodes.
fn field<T: DeserializeOwned>(object: &Value, name: &str) -> Option<T> {
    part(object.get(name)?)
}

/// Returns the entries of a map that decode as this type.
fn entries<T: DeserializeOwned>(object: &Value, name: &str) -> BTreeMap<String, T> {
    let entries = object.get(name).and_then(Value::as_object);
    let entry = |(key, value): (&String, &Value)| Some((key.clone(), part(value)?));
    entries.into_iter().flatten().filter_map(entry).collect()
}

fn conditions(value: &Value) -> Vec<JobCondition> {
    let condition = |value: &Value| {
        Some(JobCondition {
            type_: field(value, "type")?,
            status: field(value, "status")?,
            reason: field(value, "reason").unwrap_or_default(),
            message: field(value, "message").unwrap_or_default(),
            last_update_time: field(value, "lastUpdateTime"),
            last_transition_time: field(value, "lastTransitionTime"),
        })
    };
    let items = value.as_array().into_iter().flatten();
    items.filter_map(condition).collect()
}

fn replica_statuses(value: &Value) -> BTreeMap<String, ReplicaStatus> {
    let of_role = |value: &Value| ReplicaStatus {
        active: field(value, "active").unwrap_or_default(),
        succeeded: field(value, "succeeded").unwrap_or_default(),
        failed: field(value, "failed").unwrap_or_default(),
        ready: field(value, "ready"),
        selector: field(value, "selector"),
    };
    let roles = value.as_object().into_iter().flatten();
    roles
        .filter(|(_, value)| value.is_object())
        .map(|(role, value)| (role.clone(), of_role(value)))
        .collect()
}

fn failure(value: &Value) -> Option<FailureRecord> {
    Some(FailureRecord {
        summary: field(value, "summary").unwrap_or_default(),
        reason: field(value, "reason")?,
        message: field(value, "message").unwrap_or_default(),
        role: field(value, "role"),
        index: field(value, "index"),
        pod: field(value, "pod"),
        container: field(value, "container"),
        exit_code: field(value, "exitCode"),
        signal: field(value, "signal"),
        time: field(value, "time"),
        node: field(value, "node"),
    })
}

fn progress(value: &Value) -> Option<ProgressStatus> {
    value.is_object().then(|| ProgressStatus {
        summary: field(value, "summary").unwrap_or_default(),
        step: field(value, "step"),
        total: field(value, "total"),
        loss: field(value, "loss"),
        values: entries(value, "values"),
        at: field(value, "at"),
        line: field(value, "line").unwrap_or_default(),
    })
}

fn failures(value: &Value) -> Vec<FailureRecord> {
    let items = value.as_array().into_iter().flatten();
    items.filter_map(failure).collect()
}

fn recovery(value: &Value) -> Recovery {
    let restarted = value.get("restarted").and_then(Value::as_array);
    Recovery {
        job: field(value, "job").unwrap_or_default(),
        roles: entries(value, "roles"),
        replicas: entries(value, "replicas"),
        retries: entries(value, "retries"),
        sizes: entries(value, "sizes"),
        in_place: entries(value, "inPlace"),
        started: entries(value, "started"),
        restarted: restarted.into_iter().flatten().filter_map(part).collect(),
        uncounted: entries(value, "uncounted"),
        completed: entries(value, "completed"),
        backoff: entries(value, "backoff"),
    }
}
