//! The state of the job and its children, as tests compare it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use training_job::TrainingJob;
use training_job::api::{ConditionStatus, JobCondition, JobStatus};
use training_job::plan::observed::PodRecord;

use super::{PlanHarness, is_leaving, name};

impl<J: TrainingJob> PlanHarness<J> {
    /// Returns the job's status.
    pub fn status(&self) -> JobStatus {
        self.job.status().cloned().unwrap_or_default()
    }

    /// Returns the types of the conditions with status True, in order, such as `Created Running`.
    pub fn state(&self) -> String {
        let mut conditions = self.status().conditions;
        conditions.retain(|c| c.status == ConditionStatus::True);
        let types: Vec<String> = conditions.into_iter().map(|c| c.type_).collect();
        types.join(" ")
    }

    /// Returns all conditions in order, as `Type=Status(Reason)`.
    pub fn conditions(&self) -> Vec<String> {
        let all = self.status().conditions;
        all.iter()
            .map(|c| format!("{}={:?}({})", c.type_, c.status, c.reason))
            .collect()
    }

    /// Returns the active, succeeded and failed counts of a role.
    pub fn counts(&self, role: &str) -> (i32, i32, i32) {
        let role = self
            .status()
            .replica_statuses
            .get(role)
            .cloned()
            .unwrap_or_default();
        (role.active, role.succeeded, role.failed)
    }

    /// Returns the condition of this type, if its status is True.
    pub fn held(&self, type_: &str) -> Option<JobCondition> {
        let conditions = self.status().conditions.into_iter();
        conditions
            .rev()
            .find(|c| c.type_ == type_ && c.status == ConditionStatus::True)
    }

    /// Returns the message of the condition of this type, or an empty string if its status is not True.
    pub fn message_of(&self, type_: &str) -> String {
        self.held(type_).map(|c| c.message).unwrap_or_default()
    }

    /// Returns the names of the pods without the job's name. Terminating pods are in parentheses.
    pub fn pod_names(&self) -> Vec<String> {
        let short = |pod: &Pod| name(pod).trim_start_matches("job-").to_owned();
        let all = self.pods.values();
        all.map(|p| {
            if is_leaving(p) {
                format!("({})", short(p))
            } else {
                short(p)
            }
        })
        .collect()
    }

    /// Returns the names of the services without the job's name.
    pub fn service_names(&self) -> Vec<String> {
        self.services
            .keys()
            .map(|n| n.trim_start_matches("job-").to_owned())
            .collect()
    }

    /// Returns the attempt that each pod was created for, by replica.
    pub fn attempts(&self) -> BTreeMap<String, u32> {
        let short = |name: &str| name.trim_start_matches("job-").to_owned();
        self.pods
            .iter()
            .map(|(n, p)| (short(n), PodRecord::from(p).attempt))
            .collect()
    }

    /// Returns the reasons of all events, in order.
    pub fn event_reasons(&self) -> Vec<&str> {
        self.events.iter().map(|e| e.reason.as_str()).collect()
    }
}
