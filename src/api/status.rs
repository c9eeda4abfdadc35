//! A job's status: what the Go operator's clients read, and what this controller must remember.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::objects_only::{list_of_objects, map_of_objects, object, optional_object};

/// The most earlier failures that a status keeps: each may have 2 KB of a log.
const MAX_FAILURE_HISTORY: usize = 5;

/// The status of a training job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobStatus {
    /// What has become of the job, oldest change first.
    #[serde(default, deserialize_with = "list_of_objects")]
    #[schemars(schema_with = "nullable::<Vec<JobCondition>>")]
    pub conditions: Vec<JobCondition>,

    /// Replicas by role.
    #[serde(default, deserialize_with = "map_of_objects")]
    #[schemars(schema_with = "nullable::<BTreeMap<String, ReplicaStatus>>")]
    pub replica_statuses: BTreeMap<String, ReplicaStatus>,

    /// When the job started, or was resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,

    /// When the job ended, well or badly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,

    /// Written by the Go operator while a gang waits; kept as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reconcile_time: Option<Time>,

    /// Restarts that count against `backoffLimit`. Never decreases.
    #[serde(
        default,
        skip_serializing_if = "is_zero",
        deserialize_with = "null_is_default"
    )]
    #[schemars(range(min = 0))]
    pub restart_count: i32,

    /// The latest failure that restarted or ended the job. Unset for a job that has succeeded.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_object"
    )]
    pub failure: Option<FailureRecord>,

    /// Earlier failures, the latest last; at most five. Those of a job that has succeeded are all here.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "list_of_objects"
    )]
    pub failure_history: Vec<FailureRecord>,

    /// What the controller must remember across its own restarts.
    #[serde(
        default,
        skip_serializing_if = "Recovery::is_empty",
        deserialize_with = "object"
    )]
    pub recovery: Recovery,
}

/// One fact about a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobCondition {
    /// Which fact.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, in one word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When any of this last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
    /// When `status` last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Not known; never written by this controller.
    Unknown,
}

/// The condition types of a training job, named as on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionType {
    /// The controller has seen the job.
    Created,
    /// The replicas that decide the job run.
    Running,
    /// Failed replicas are being replaced.
    Restarting,
    /// The job has ended well.
    Succeeded,
    /// The job is suspended.
    Suspended,
    /// The job has ended badly.
    Failed,
}

impl ConditionType {
    /// The type on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "Created",
            Self::Running => "Running",
            Self::Restarting => "Restarting",
            Self::Succeeded => "Succeeded",
            Self::Suspended => "Suspended",
            Self::Failed => "Failed",
        }
    }
}

/// How many replicas of a role are in which state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaStatus {
    /// Running.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub active: i32,
    /// Ended with success.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub succeeded: i32,
    /// Ended with failure.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: i32,
    /// The role's pods as a label selector, for the scale sub-resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
}

/// The failure that restarted or ended a job: its root cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureRecord {
    /// Why, in one word: the container's or pod's reason, or what the controller saw.
    pub reason: String,
    /// Why, in a sentence; in local mode with the container's last log lines. At most 2,048 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The failed replica's role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The failed replica's index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<i32>,
    /// Its pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// The container that failed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The container's exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// When it failed, or was taken away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// The node that the pod was taken away from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// What the controller must remember across its own restarts.
///
/// A replica's *attempt* is the sum of the restarts of the job, its role and itself. A pod made for
/// an earlier attempt (annotation [`RESTART_ATTEMPT`](super::labels::RESTART_ATTEMPT)) is on its way
/// out and says nothing about the job any more.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Recovery {
    /// Restarts of the whole job.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub job: i32,
    /// Restarts of whole roles.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<String, i32>,
    /// Restarts of single replicas, by `<role in lower case>-<index>`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub replicas: BTreeMap<String, i32>,
    /// Container restarts by the kubelet that are counted already, by `<role in lower case>-<index>`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub in_place: BTreeMap<String, i32>,
    /// How many replicas of each role, from index 0 on, have had a pod in their current attempt. One
    /// of these without a pod has lost it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub started: BTreeMap<String, i32>,
    /// When the latest restarts were, if the job limits how many there may be in some time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restarted: Vec<Time>,
    /// Indexes of replicas that ended with success and need no pod any more, such as `0-2,5`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub completed: BTreeMap<String, String>,
    /// Restarts after which the next attempt failed soon: of the job (`job`), of roles by name, and of single replicas by
    /// `<role in lower case>-<index>`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub backoff: BTreeMap<String, Backoff>,
}

/// The pause before a restart. It grows while attempts fail soon after their start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backoff {
    /// Attempts in a row that failed soon.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: i32,
    /// No pod is created before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

impl Recovery {
    /// Whether there is nothing to remember.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl JobStatus {
    /// The condition of this type, if the status has one.
    pub fn condition(&self, type_: ConditionType) -> Option<&JobCondition> {
        self.conditions.iter().find(|c| c.type_ == type_.as_str())
    }

    /// Whether the condition of this type holds.
    pub fn is(&self, type_: ConditionType) -> bool {
        self.condition(type_)
            .is_some_and(|c| c.status == ConditionStatus::True)
    }

    /// The status with the counts of `other`: what differs between the two then is urgent news, to be written at once.
    /// Changes of counts may wait a little, so that what changes together costs one write. A new field is urgent unless
    /// it is copied here.
    pub(crate) fn with_counts_of(&self, other: &Self) -> Self {
        let mut status = self.clone();
        status.replica_statuses.clone_from(&other.replica_statuses);
        status.recovery.completed.clone_from(&other.recovery.completed);
        status.recovery.started.clone_from(&other.recovery.started);
        status
    }

    /// Makes `failure` the latest one, or says that there is none any more. What was the latest goes into the history.
    pub(crate) fn set_failure(&mut self, failure: Option<FailureRecord>) {
        let earlier = std::mem::replace(&mut self.failure, failure);
        self.failure_history.extend(earlier);
        let surplus = self.failure_history.len().saturating_sub(MAX_FAILURE_HISTORY);
        self.failure_history.drain(..surplus);
    }

    /// Whether the job has ended, well or badly.
    pub fn is_finished(&self) -> bool {
        self.is(ConditionType::Succeeded) || self.is(ConditionType::Failed)
    }
}

fn is_zero(n: &i32) -> bool {
    *n == 0
}

/// Go clients write null for an empty list or map.
fn null_is_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(d: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or_default())
}

fn nullable<T: JsonSchema>(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut schema = T::json_schema(generator);
    schema.insert("nullable".into(), true.into());
    schema
}
