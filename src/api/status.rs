//! A job's status: the fields that clients of the Go operator read, and the state that the controller stores.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::ProgressStatus;
use super::objects_only::{list_of_objects, map_of_objects, object, optional_object};

/// The maximum number of earlier failures in a status, because each may have 2 KB of a log.
const MAX_FAILURE_HISTORY: usize = 5;

/// The status of a training job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobStatus {
    /// Conditions of the job, oldest change first.
    #[serde(default, deserialize_with = "list_of_objects")]
    #[schemars(schema_with = "nullable::<Vec<JobCondition>>")]
    pub conditions: Vec<JobCondition>,

    /// Numbers of active, succeeded and failed replicas by role.
    #[serde(default, deserialize_with = "map_of_objects")]
    #[schemars(schema_with = "nullable::<BTreeMap<String, ReplicaStatus>>")]
    pub replica_statuses: BTreeMap<String, ReplicaStatus>,

    /// Time when the job started or was last resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,

    /// Time when the job succeeded or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,

    /// Time that the Go operator wrote while a gang waited. This operator keeps the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reconcile_time: Option<Time>,

    /// Number of restarts that count against backoffLimit. It never decreases.
    #[serde(
        default,
        skip_serializing_if = "is_zero",
        deserialize_with = "null_is_default"
    )]
    #[schemars(range(min = 0))]
    pub restart_count: i32,

    /// Number of replicas that are ready, or that run if the kind has no role that waits for readiness, and of all
    /// replicas, such as `2/3`. It changes only together with another field.
    #[serde(
        default,
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_is_default"
    )]
    pub ready: String,

    /// Reason in one word why a job waits: no replica runs, such as Unschedulable, the job is Stalled, or the API server refuses to create,
    /// patch or delete one of its objects, such as FailedCreatePod; the latter also in a job that runs or has ended. An
    /// event of the job has the details.
    #[serde(
        default,
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_is_default"
    )]
    pub waiting_reason: String,

    /// Time since when the job waits for this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_since: Option<Time>,

    /// Latest failure that restarted or ended the job. Unset if the job has succeeded.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_object"
    )]
    pub failure: Option<FailureRecord>,

    /// Earlier failures, at most 5, the latest last. For a job that has succeeded, the list includes its latest
    /// failure.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "list_of_objects"
    )]
    pub failure_history: Vec<FailureRecord>,

    /// Progress of the job, if its run policy requests it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_object"
    )]
    pub progress: Option<ProgressStatus>,

    /// State that the controller needs after its own restart. Only the controller writes it.
    #[serde(
        default,
        skip_serializing_if = "Recovery::is_empty",
        deserialize_with = "object"
    )]
    #[schemars(schema_with = "super::schema::any")]
    pub recovery: Recovery,
}

/// A condition of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobCondition {
    /// Type of the condition: Created, Running, Restarting, Stalled, Succeeded, Suspended or Failed.
    #[serde(rename = "type")]
    pub type_: String,
    /// Status of the condition: True, False or Unknown.
    pub status: ConditionStatus,
    /// Reason for the status in one word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Reason for the status as a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Time of the last change of the condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
    /// Time of the last change of the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ConditionStatus {
    /// The condition is met.
    True,
    /// The condition is not met.
    False,
    /// The status is unknown. This controller never writes it.
    Unknown,
}

/// The condition types of a training job, named as on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionType {
    /// The controller has seen the job.
    Created,
    /// The replicas that determine the state of the job are running.
    Running,
    /// Failed replicas are being replaced.
    Restarting,
    /// The job runs and makes no progress.
    Stalled,
    /// The job has succeeded.
    Succeeded,
    /// The job is suspended.
    Suspended,
    /// The job has failed.
    Failed,
    /// A hook of the kind panicked, so the job does not change.
    HookPanicked,
}

impl ConditionType {
    /// Returns the type as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "Created",
            Self::Running => "Running",
            Self::Restarting => "Restarting",
            Self::Stalled => "Stalled",
            Self::Succeeded => "Succeeded",
            Self::Suspended => "Suspended",
            Self::Failed => "Failed",
            Self::HookPanicked => "HookPanicked",
        }
    }
}

/// The numbers of replicas of a role by state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaStatus {
    /// Number of running replicas.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub active: i32,
    /// Number of succeeded replicas.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub succeeded: i32,
    /// Number of failed replicas.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: i32,
    /// Number of active replicas that are ready. Set for kinds with a role that waits until others are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<i32>,
    /// Label selector of the role's pods, for the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
}

/// The failure that restarted or ended a job: its root cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureRecord {
    /// Failure in a few words, for tables: `worker-1: exit 3`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Reason in one word: that of the container or the pod, or the controller's own.
    pub reason: String,
    /// Reason as a sentence, at most 2048 bytes. In a local run it contains the last log lines of the container.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Role of the failed replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Index of the failed replica within its role, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<i32>,
    /// Pod of the failed replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Container that failed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Exit code of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Signal that ended the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Time of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// Node of the pod, if the cluster deleted or evicted the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// State that the controller needs after its own restart.
///
/// The attempt of a replica is the sum of the restarts of the job, of its role and of the replica itself. A pod of an
/// earlier attempt (annotation [`RESTART_ATTEMPT`](super::labels::RESTART_ATTEMPT)) is outdated and is deleted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Recovery {
    /// Number of restarts of the whole job.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub job: i32,
    /// Number of restarts of whole roles, by role.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<String, i32>,
    /// Number of restarts of single replicas, by `<role in lower case>-<index>`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub replicas: BTreeMap<String, i32>,
    /// Number of restarts that count against a role's own limit, by role.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub retries: BTreeMap<String, i32>,
    /// Number of container restarts by the kubelet that are already counted, by `<role in lower case>-<index>`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub in_place: BTreeMap<String, i32>,
    /// Number of replicas of each role, from index 0, that had a pod in their current attempt. If one of them has no
    /// pod, the pod was lost.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub started: BTreeMap<String, i32>,
    /// Number of replicas of each role for which the pods of the current attempt were created.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sizes: BTreeMap<String, i32>,
    /// Times of the latest restarts, if the failure policy limits the restarts in a window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restarted: Vec<Time>,
    /// Times of the latest restarts for failures of each role that the kind counts against no other limit than that of an
    /// hour.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub uncounted: BTreeMap<String, Vec<Time>>,
    /// Indexes of the replicas of each role that have succeeded and need no pod, such as `0-2,5`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub completed: BTreeMap<String, String>,
    /// Pauses before restarts: of the job (key `job`), of roles by name, and of single replicas by
    /// `<role in lower case>-<index>`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub backoff: BTreeMap<String, Backoff>,
}

/// The pause before a restart. It grows while attempts fail soon after their start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backoff {
    /// Number of consecutive attempts that failed soon after their start.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: i32,
    /// Time before which no pod is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

impl FailureRecord {
    /// Returns the record with its summary, unless it has one.
    pub(crate) fn summarized(mut self) -> Self {
        if self.summary.is_empty() {
            self.summary = self.summary_with(None);
        }
        self
    }

    /// Returns the failure in a few words. `limit` is the reason of the limit that it exceeded, if any.
    pub(crate) fn summary_with(&self, limit: Option<&str>) -> String {
        // Kubelets report the reason Error for each exit code that has no other.
        let own = Some(self.reason.as_str()).filter(|reason| !matches!(*reason, "" | "Error"));
        let reasons: Vec<&str> = own.into_iter().chain(limit).collect();
        let cause = match (self.exit_code, &reasons[..]) {
            (Some(code), []) => format!("exit {code}"),
            (Some(code), reasons) => format!("exit {code} ({})", reasons.join(", ")),
            (None, [own, limit]) => format!("{own} ({limit})"),
            (None, [only]) => (*only).to_owned(),
            (None, _) => self.reason.clone(),
        };
        match (&self.role, self.index) {
            (Some(role), Some(index)) => format!("{}-{index}: {cause}", role.to_lowercase()),
            _ => cause,
        }
    }
}

impl Recovery {
    /// Returns true if there is no state to store.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl JobStatus {
    /// Returns the condition of this type, if the status has one.
    pub fn condition(&self, type_: ConditionType) -> Option<&JobCondition> {
        self.conditions.iter().find(|c| c.type_ == type_.as_str())
    }

    /// Returns true if the condition of this type is true.
    pub fn is(&self, type_: ConditionType) -> bool {
        self.condition(type_)
            .is_some_and(|c| c.status == ConditionStatus::True)
    }

    /// Returns the status with the counts of `other`, and what follows from them. A remaining difference between both
    /// is urgent and is written immediately. Changes of counts are delayed, so that several of them take one write. A
    /// new field is urgent unless it is copied here.
    pub(crate) fn with_counts_of(&self, other: &Self) -> Self {
        let mut status = self.clone();
        status.replica_statuses.clone_from(&other.replica_statuses);
        status.recovery.completed.clone_from(&other.recovery.completed);
        status.recovery.started.clone_from(&other.recovery.started);
        status.recovery.sizes.clone_from(&other.recovery.sizes);
        status.ready.clone_from(&other.ready);
        status.waiting_reason.clone_from(&other.waiting_reason);
        status.waiting_since.clone_from(&other.waiting_since);
        status.progress.clone_from(&other.progress);
        status
    }

    /// Sets the reason why the job waits; empty if it does not. The time of a reason that stays is kept.
    pub(crate) fn set_waiting(&mut self, reason: String, now: Timestamp) {
        if reason != self.waiting_reason {
            self.waiting_since = (!reason.is_empty()).then_some(Time(now));
            self.waiting_reason = reason;
        }
    }

    /// Sets or removes the latest failure, and appends the previous one to the history.
    pub(crate) fn set_failure(&mut self, failure: Option<FailureRecord>) {
        let failure = failure.map(FailureRecord::summarized);
        let earlier = std::mem::replace(&mut self.failure, failure);
        self.failure_history.extend(earlier);
        let surplus = self.failure_history.len().saturating_sub(MAX_FAILURE_HISTORY);
        self.failure_history.drain(..surplus);
    }

    /// Returns true if the job has succeeded or failed.
    pub fn is_finished(&self) -> bool {
        self.is(ConditionType::Succeeded) || self.is(ConditionType::Failed)
    }
}

fn is_zero(n: &i32) -> bool {
    *n == 0
}

/// Decodes null as the default, because Go clients write null for an empty list or map.
fn null_is_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(d: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or_default())
}

fn nullable<T: JsonSchema>(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut schema = T::json_schema(generator);
    schema.insert("nullable".into(), true.into());
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_summarized_in_a_few_words() {
        let of_pod = |reason: &str, exit_code| FailureRecord {
            reason: reason.to_owned(),
            role: Some("Worker".to_owned()),
            index: Some(1),
            exit_code,
            ..FailureRecord::default()
        };
        let deadline = FailureRecord {
            reason: "DeadlineExceeded".to_owned(),
            ..FailureRecord::default()
        };
        for (record, summary) in [
            (of_pod("Error", Some(3)), "worker-1: exit 3"),
            (of_pod("OOMKilled", Some(137)), "worker-1: exit 137 (OOMKilled)"),
            (of_pod("Evicted", None), "worker-1: Evicted"),
            (deadline, "DeadlineExceeded"),
        ] {
            assert_eq!(record.summarized().summary, summary);
        }
        for (record, summary) in [
            (of_pod("Error", Some(1)), "worker-1: exit 1 (Limit)"),
            (
                of_pod("OOMKilled", Some(137)),
                "worker-1: exit 137 (OOMKilled, Limit)",
            ),
            (of_pod("Evicted", None), "worker-1: Evicted (Limit)"),
            (FailureRecord::default(), "Limit"),
        ] {
            assert_eq!(record.summary_with(Some("Limit")), summary);
        }
    }
}
