//! Policies of a job that go beyond its restart policies, named as in `batch/v1` Job and JobSet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy::words;

/// The most rules of a failure policy.
pub const MAX_RULES: usize = 20;
/// The most exit codes of a rule.
pub const MAX_EXIT_CODES: usize = 64;
/// The most conditions of a rule.
pub const MAX_CONDITIONS: usize = 20;
/// The most roles that a policy or rule may name.
pub const MAX_POLICY_ROLES: usize = 16;
/// The most restarts in a window: the status remembers when each was.
pub const MAX_RESTARTS_IN_WINDOW: i32 = 100;

/// What follows from failures, before restart policies are asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailurePolicy {
    /// How many restarts the job may have before its next failure is final; no limit if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_restarts: Option<i32>,

    /// Only restarts of so many seconds count as `maxRestarts`; all if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub window_seconds: Option<i32>,

    /// The first rule that a failure matches says what follows from it; if none does, its role's restart policy. With
    /// rules the operator restarts replicas, not their kubelets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_RULES))]
    pub rules: Vec<FailureRule>,
}

/// What follows from certain failures. Without exit codes and conditions it is all failures of its roles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureRule {
    /// What follows. `Ignore`: the replica is restarted as always, whatever its restart policy, and it does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<FailureAction>,

    /// The roles that it is about; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_POLICY_ROLES))]
    pub roles: Vec<String>,

    /// Failures in which a container ended with these exit codes. A pod that was taken away has no exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_exit_codes: Option<OnExitCodes>,

    /// Failures of pods that have one of these conditions. A pod that was deleted has `DisruptionTarget`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_CONDITIONS))]
    pub on_pod_conditions: Option<Vec<OnPodCondition>>,
}

/// Exit codes of containers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OnExitCodes {
    /// The container; the framework's or an init container if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_name: Option<String>,

    /// Whether the code is one of these, or none of them. 0 is neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<ExitCodeOperator>,

    /// The codes, from 1 to 255.
    #[serde(default)]
    #[schemars(length(max = MAX_EXIT_CODES))]
    pub values: Vec<i32>,
}

/// A condition of a pod, but for those that each pod has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OnPodCondition {
    /// Its type, such as `DisruptionTarget`.
    #[serde(rename = "type", default)]
    pub type_: String,

    /// Its status; `True` if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// Whose success is the job's, in the place of the kind's own rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobSuccessPolicy {
    /// Whether all replicas of these roles must succeed, which is the default, or any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<SuccessOperator>,

    /// The roles whose replicas decide; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_POLICY_ROLES))]
    pub roles: Vec<String>,
}

words! {
    /// What follows from a failure.
    FailureAction {
        /// The job fails.
        FailJob,
        /// All replicas restart.
        RestartJob,
        /// All replicas of the role restart.
        RestartRole,
        /// The replica restarts alone.
        RestartReplica,
        /// What restarts with the replica does, and it counts against no limit.
        Ignore,
    }
}

words! {
    /// How a container's exit code is compared.
    ExitCodeOperator {
        /// It is one of the values.
        In,
        /// It is none of the values.
        NotIn,
    }
}

words! {
    /// How many of the replicas must succeed.
    SuccessOperator {
        /// All of them.
        All,
        /// Any of them.
        Any,
    }
}

impl FailureRule {
    /// Whether it is about replicas of this role.
    pub fn concerns(&self, role: &str) -> bool {
        self.roles.is_empty() || self.roles.iter().any(|own| own.eq_ignore_ascii_case(role))
    }
}

impl OnExitCodes {
    /// Whether a container that ended with this code, which is not 0, is meant.
    pub fn matches(&self, container: &str, code: i32) -> bool {
        let any = |name: &String| name.is_empty() || name == container;
        let wants_in = self.operator != Some(ExitCodeOperator::NotIn);
        self.container_name.as_ref().is_none_or(any) && self.values.contains(&code) == wants_in
    }
}

impl OnPodCondition {
    /// Its status.
    pub fn status(&self) -> &str {
        self.status.as_deref().filter(|s| !s.is_empty()).unwrap_or("True")
    }
}
