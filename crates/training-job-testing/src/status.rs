//! Checks that a kind decodes its status as it was encoded.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Map, Value};

use training_job::api::{
    Backoff, ConditionStatus, ConditionType, FailureRecord, JobCondition, JobStatus, ProgressStatus,
    Recovery, ReplicaStatus,
};
use training_job::job::{Kind, Settings};
use training_job::validate::validate_any;

/// Returns the error of a status that is encoded by `encode_status`, stored in the job, and read by `status()`.
/// Returns `None` if the job cannot be decoded even without a status, because other checks report that.
pub(super) fn check(kind: &Kind, job: &Value) -> Option<String> {
    let mut stored = job.clone();
    if let Some(fields) = stored.as_object_mut() {
        fields.remove("status");
    }
    let job = kind.decode(&stored).ok()?;
    let written = full(kind);
    let valid = validate_any(kind, &*job, &Settings::default()).ok();
    let encoded = match job.encode_status(&written, valid.as_ref().map(|valid| &valid.topology)) {
        Ok(encoded) => encoded,
        Err(error) => return Some(format!("encode_status fails: {error}")),
    };
    stored["status"] = encoded;
    let read = match kind.decode(&stored) {
        Ok(read) => read,
        Err(error) => {
            return Some(format!(
                "a job with the status that encode_status writes cannot be read: {error}"
            ));
        }
    };
    let what = match read.status() {
        None => "status() is None".to_owned(),
        Some(read) if *read == written => return None,
        Some(read) => {
            let json = |status| serde_json::to_value(status).unwrap_or_default();
            difference("", &json(&written), Some(&json(read)))
                .unwrap_or_else(|| "status() differs".to_owned())
        }
    };
    Some(format!(
        "status() must return what encode_status was given\n  {what}\n  the operator stores in the status what it has \
         restarted, so both must be equal"
    ))
}

/// Returns the first field of `written` that `read` lacks or has with another value, or else a field that only `read`
/// has.
fn difference(path: &str, written: &Value, read: Option<&Value>) -> Option<String> {
    let below = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    match (written, read) {
        (written, Some(read)) if written == read => None,
        (Value::Object(written), Some(Value::Object(read))) => {
            let lost = written
                .iter()
                .find_map(|(name, value)| difference(&below(name), value, read.get(name)));
            lost.or_else(|| added(written, read, below))
        }
        (Value::Array(written), Some(Value::Array(read))) if written.len() == read.len() => {
            let mut items = written.iter().zip(read).enumerate();
            items.find_map(|(n, (written, read))| difference(&format!("{path}[{n}]"), written, Some(read)))
        }
        (written, None) => Some(format!("{path}: {written} was written, but nothing is read")),
        (written, Some(read)) => Some(format!("{path}: {written} was written, but {read} is read")),
    }
}

fn added(
    written: &Map<String, Value>,
    read: &Map<String, Value>,
    below: impl Fn(&str) -> String,
) -> Option<String> {
    let (name, value) = read.iter().find(|(name, _)| !written.contains_key(*name))?;
    Some(format!(
        "{}: nothing was written, but {value} is read",
        below(name)
    ))
}

/// Returns a status in which every field has a different value. No real job has all of them at once.
fn full(kind: &Kind) -> JobStatus {
    let roles = || kind.framework.roles.iter();
    let named = |role: &str| role.to_owned();
    let first = roles().next().map_or("", |role| role.name);
    let replica = format!("{}-0", first.to_lowercase());
    JobStatus {
        conditions: conditions(),
        replica_statuses: roles()
            .zip(1..)
            .map(|(role, n)| {
                let status = ReplicaStatus {
                    active: n,
                    succeeded: n + 1,
                    failed: n + 2,
                    ready: kind.framework.waits_for_readiness().then_some(n),
                    selector: Some(format!("role={}", role.slug())),
                };
                (named(role.name), status)
            })
            .collect(),
        start_time: Some(time(1)),
        completion_time: Some(time(2)),
        last_reconcile_time: Some(time(3)),
        restart_count: 4,
        ready: "2/3".to_owned(),
        waiting_reason: "Unschedulable".to_owned(),
        waiting_since: Some(time(5)),
        failure: Some(FailureRecord {
            summary: "worker-1: exit 137 (OOMKilled)".to_owned(),
            reason: "OOMKilled".to_owned(),
            message: "it was out of memory".to_owned(),
            role: Some(named(first)),
            index: Some(5),
            pod: Some("a-pod".to_owned()),
            container: Some(kind.framework.main_container.to_owned()),
            exit_code: Some(137),
            signal: Some(9),
            time: Some(time(4)),
            node: Some("a-node".to_owned()),
        }),
        failure_history: vec![FailureRecord {
            reason: "Error".to_owned(),
            ..FailureRecord::default()
        }],
        progress: Some(ProgressStatus {
            summary: "7/9".to_owned(),
            step: Some(7.0),
            total: Some(9.0),
            loss: Some(0.5),
            values: BTreeMap::from([("accuracy".to_owned(), 0.25)]),
            at: Some(time(7)),
            line: "step 7/9 loss=0.5".to_owned(),
        }),
        recovery: Recovery {
            job: 6,
            roles: BTreeMap::from([(named(first), 7)]),
            replicas: BTreeMap::from([(replica.clone(), 8)]),
            sizes: BTreeMap::from([(named(first), 12)]),
            retries: BTreeMap::from([(named(first), 11)]),
            in_place: BTreeMap::from([(replica, 9)]),
            started: BTreeMap::from([(named(first), 10)]),
            restarted: vec![time(4)],
            uncounted: BTreeMap::from([(named(first), vec![time(6)])]),
            completed: BTreeMap::from([(named(first), "0-2,5".to_owned())]),
            backoff: BTreeMap::from([(
                "job".to_owned(),
                Backoff {
                    failures: 11,
                    until: Some(time(5)),
                },
            )]),
        },
    }
}

/// Returns one condition of each type. Some of them are true.
fn conditions() -> Vec<JobCondition> {
    let holding = [
        (ConditionType::Created, ConditionStatus::True),
        (ConditionType::Running, ConditionStatus::False),
        (ConditionType::Restarting, ConditionStatus::False),
        (ConditionType::Stalled, ConditionStatus::False),
        (ConditionType::Suspended, ConditionStatus::False),
        (ConditionType::Failed, ConditionStatus::False),
        (ConditionType::Succeeded, ConditionStatus::True),
    ];
    let conditions = holding
        .into_iter()
        .zip(5..)
        .map(|((type_, status), n)| JobCondition {
            type_: type_.as_str().to_owned(),
            status,
            reason: format!("Job{}", type_.as_str()),
            message: format!("the job is {}", type_.as_str()),
            last_update_time: Some(time(10 * n + 1)),
            last_transition_time: Some(time(10 * n)),
        });
    conditions.collect()
}

/// Returns a time in whole seconds, the resolution of the API.
fn time(minute: i64) -> Time {
    Time(Timestamp::constant(1_700_000_000 + 60 * minute, 0))
}
