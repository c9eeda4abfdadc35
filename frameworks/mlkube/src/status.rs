//! The status of both kinds: a phase, a state and a list of replicas, in addition to the fields of every job of this
//! operator.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use training_job::api::{
    ConditionStatus, ConditionType, FailureRecord, JobCondition, JobStatus, ProgressStatus, Recovery,
    ReplicaStatus,
};

/// The status of a job. `R` is an entry of the list of replica statuses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(bound = "R: JsonSchema + Serialize + Default")]
pub struct Status<R> {
    /// The phase: `Creating`, `Running` or `Done`; `Failed` if the spec is invalid; `CleanUp` while the job is being
    /// deleted.
    pub phase: String,
    /// The state: `Unknown`, `Running`, `Succeeded` or `Failed`.
    pub state: String,
    /// The reason that the job failed; empty if it has not failed.
    pub reason: String,
    /// Always false.
    pub control_paused: bool,
    /// The conditions of the job. The oldest change comes first.
    pub conditions: Vec<Condition>,
    /// The state of the replicas, with one entry for each role.
    pub replica_statuses: Vec<R>,
    /// The time at which the job started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// The time at which the job succeeded or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// The time that an earlier operator wrote. This operator does not change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_reconcile_time: Option<Time>,
    /// The number of restarts. Replicas that restart together count once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_count: Option<i32>,
    /// The number of running replicas and of all replicas, such as `2/3`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ready: String,
    /// The reason why an active job waits, in one word.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub waiting_reason: String,
    /// The time since when the job waits for this reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_since: Option<Time>,
    /// The latest failure that restarted replicas or ended the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureRecord>,
    /// Earlier failures. The latest comes last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failure_history: Vec<FailureRecord>,
    /// The progress of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressStatus>,
    /// The state that the controller needs after its own restart. Do not change it.
    #[serde(skip_serializing_if = "Recovery::is_empty")]
    #[schemars(schema_with = "training_job::api::schema::any")]
    pub recovery: Recovery,
    #[serde(skip)]
    #[schemars(skip)]
    job: JobStatus,
}

/// A condition of a job.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    #[serde(flatten)]
    condition: JobCondition,
    /// The same time as `lastTransitionTime`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transition_time: Option<Time>,
}

/// An entry of the list of replica statuses. The two kinds have different names for the field with the role.
pub trait RoleStatusEntry: Clone + Default + Serialize + DeserializeOwned + JsonSchema {
    /// Makes the entry of a role.
    fn new(role: String, counts: Counts) -> Self;
    /// Returns the role and its counts.
    fn parts(self) -> (String, Counts);
}

/// The number of a role's replicas by state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// The state of the role: `Unknown`, `Running`, `Succeeded` or `Failed`.
    #[serde(default)]
    pub state: String,
    /// The number of replicas by state: `Running`, `Succeeded`, `Failed`.
    #[serde(default, rename = "ReplicasStates")]
    pub replicas_states: BTreeMap<String, i32>,
    /// The role's pods as a label selector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
}

impl<R> Status<R> {
    /// Returns the status in the form of the library.
    pub(crate) fn job(&self) -> &JobStatus {
        &self.job
    }
}

impl<R: RoleStatusEntry> Status<R> {
    /// Converts a status of the library.
    pub(crate) fn of(job: &JobStatus, deleting: bool) -> Self {
        let failed = job
            .condition(ConditionType::Failed)
            .filter(|c| c.status == ConditionStatus::True);
        let is_invalid = failed.is_some_and(|failed| failed.reason.ends_with("FailedValidation"));
        let runs = job.is(ConditionType::Running) || job.is(ConditionType::Restarting);
        let phase = match failed {
            _ if deleting => "CleanUp",
            _ if is_invalid => "Failed",
            _ if job.is_finished() => "Done",
            _ if runs => "Running",
            _ if job.is(ConditionType::Created) => "Creating",
            _ => "",
        };
        let state = match failed {
            Some(_) => "Failed",
            None if job.is(ConditionType::Succeeded) => "Succeeded",
            None if runs => "Running",
            None => "Unknown",
        };
        let because = failed.map(|failed| {
            let cause = job.failure.as_ref().map(|failure| &failure.message);
            cause.filter(|cause| !cause.is_empty()).unwrap_or(&failed.message)
        });
        let conditions = job.conditions.iter().map(|condition| Condition {
            transition_time: condition.last_transition_time.clone(),
            condition: condition.clone(),
        });
        let replicas = job.replica_statuses.iter();
        Self {
            phase: phase.to_owned(),
            state: state.to_owned(),
            reason: match because {
                Some(because) if is_invalid => format!("invalid job spec: {because}"),
                because => because.cloned().unwrap_or_default(),
            },
            control_paused: false,
            conditions: conditions.collect(),
            replica_statuses: replicas.map(|(role, r)| R::new(role.clone(), r.into())).collect(),
            start_time: job.start_time.clone(),
            completion_time: job.completion_time.clone(),
            last_reconcile_time: job.last_reconcile_time.clone(),
            restart_count: Some(job.restart_count).filter(|count| *count != 0),
            ready: job.ready.clone(),
            waiting_reason: job.waiting_reason.clone(),
            waiting_since: job.waiting_since.clone(),
            failure: job.failure.clone(),
            failure_history: job.failure_history.clone(),
            progress: job.progress.clone(),
            recovery: job.recovery.clone(),
            job: job.clone(),
        }
    }
}

/// Fields that an old operator wrote in another form are ignored.
impl<'de, R: RoleStatusEntry> Deserialize<'de> for Status<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let counts = items::<R>(&value["replicaStatuses"]).into_iter().map(|entry| {
            let (role, counts) = entry.parts();
            (role, ReplicaStatus::from(&counts))
        });
        let mut job = JobStatus {
            conditions: items(&value["conditions"]),
            replica_statuses: counts.collect(),
            start_time: part(&value, "startTime"),
            completion_time: part(&value, "completionTime"),
            last_reconcile_time: part(&value, "lastReconcileTime"),
            restart_count: part(&value, "restartCount"),
            ready: part(&value, "ready"),
            waiting_reason: part(&value, "waitingReason"),
            waiting_since: part(&value, "waitingSince"),
            failure: part(&value, "failure"),
            failure_history: items(&value["failureHistory"]),
            progress: part(&value, "progress"),
            recovery: part(&value, "recovery"),
        };
        let text = |name: &str| part::<String>(&value, name);
        let (phase, state) = (text("phase"), text("state"));
        if !job.is_finished() {
            job.conditions.extend(ended_before(&phase, &state, &value));
        }
        Ok(Self::of(&job, phase == "CleanUp"))
    }
}

/// Returns the condition of a job that ended under an old operator, whose conditions had no status. Without it the job
/// would start again.
fn ended_before(phase: &str, state: &str, status: &Value) -> Option<JobCondition> {
    let (type_, how) = match (phase, state) {
        ("Done" | "CleanUp", "Succeeded") => (ConditionType::Succeeded, "succeeded"),
        ("Done" | "CleanUp", "Failed") | ("Failed", _) => (ConditionType::Failed, "failed"),
        _ => return None,
    };
    let times = status["conditions"].as_array().into_iter().flatten();
    let times = times.filter_map(|c| serde_json::from_value::<Time>(c["transitionTime"].clone()).ok());
    let last = times.max_by_key(|time| time.0);
    Some(JobCondition {
        type_: type_.as_str().to_owned(),
        status: ConditionStatus::True,
        reason: "EndedBefore".to_owned(),
        message: format!("The job {how} before this operator managed it."),
        last_update_time: last.clone(),
        last_transition_time: last,
    })
}

fn part<T: DeserializeOwned + Default>(status: &Value, name: &str) -> T {
    serde_json::from_value(status[name].clone()).unwrap_or_default()
}

fn items<T: DeserializeOwned>(list: &Value) -> Vec<T> {
    let items = list.as_array().into_iter().flatten();
    items
        .filter_map(|item| serde_json::from_value(item.clone()).ok())
        .collect()
}

impl From<&ReplicaStatus> for Counts {
    fn from(status: &ReplicaStatus) -> Self {
        let counted = [
            ("Running", status.active),
            ("Succeeded", status.succeeded),
            ("Failed", status.failed),
        ];
        let state = match status {
            ReplicaStatus { failed: 1.., .. } => "Failed",
            ReplicaStatus { active: 1.., .. } => "Running",
            ReplicaStatus { succeeded: 1.., .. } => "Succeeded",
            _ => "Unknown",
        };
        let there = counted.into_iter().filter(|(_, count)| *count != 0);
        Self {
            state: state.to_owned(),
            replicas_states: there.map(|(state, count)| (state.to_owned(), count)).collect(),
            selector: status.selector.clone(),
        }
    }
}

impl From<&Counts> for ReplicaStatus {
    fn from(counts: &Counts) -> Self {
        let count = |state: &str| counts.replicas_states.get(state).copied().unwrap_or(0);
        Self {
            active: count("Running"),
            succeeded: count("Succeeded"),
            failed: count("Failed"),
            ready: None,
            selector: counts.selector.clone(),
        }
    }
}
