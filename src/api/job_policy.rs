//! Policies of a job that go beyond its restart policies, named as in `batch/v1` Job and JobSet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy::words;

/// The maximum number of rules of a failure policy.
pub const MAX_RULES: usize = 20;
/// The maximum number of exit codes of a rule.
pub const MAX_EXIT_CODES: usize = 64;
/// The maximum number of conditions of a rule.
pub const MAX_CONDITIONS: usize = 20;
/// The maximum number of roles that a policy or a rule may name.
pub const MAX_POLICY_ROLES: usize = 16;
/// The maximum number of restarts in a window, because the status stores the time of each.
pub const MAX_RESTARTS_IN_WINDOW: i32 = 100;

/// The conditions that every pod has. No rule matches them, and records of pods do not have them, because phase and
/// readiness have the same information.
pub(crate) const COMMON_CONDITIONS: [&str; 5] = [
    "PodReadyToStartContainers",
    "PodScheduled",
    "Initialized",
    "ContainersReady",
    "Ready",
];

/// The action after a failure. It takes precedence over the restart policies of the roles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailurePolicy {
    /// Maximum number of restarts of the job. The next failure after them is final. At most 100 if windowSeconds is
    /// set. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_restarts: Option<i32>,

    /// Length in seconds of the window in which restarts count against maxRestarts, at least 1. Requires maxRestarts.
    /// Default: all restarts of the job count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub window_seconds: Option<i32>,

    /// Rules for certain failures, at most 20. The first rule that matches a failure determines the action. If no rule
    /// matches, the restart policy of the failed replica's role does. In a job with rules the operator restarts
    /// replicas, and kubelets restart no containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_RULES))]
    pub rules: Vec<FailureRule>,
}

/// The action after certain failures. A rule without exit codes and conditions matches all failures of its roles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureRule {
    /// Action after a matching failure. FailJob fails the job. RestartJob restarts all replicas, RestartRole those of
    /// the same role, and RestartReplica only the failed one. Ignore restarts the usual scope, whatever the restart
    /// policy, and the restart counts against no limit. Required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<FailureAction>,

    /// Roles to which the rule applies, at most 16. Default: all roles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_POLICY_ROLES))]
    pub roles: Vec<String>,

    /// Matches failures in which a container ended with one of these exit codes. A pod that was deleted or evicted has
    /// no exit code. A rule must not have both onExitCodes and onPodConditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_exit_codes: Option<OnExitCodes>,

    /// Matches failures of pods that have one of these conditions, at most 20. A pod that was deleted has the condition
    /// DisruptionTarget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_CONDITIONS))]
    pub on_pod_conditions: Option<Vec<OnPodCondition>>,
}

/// Exit codes of containers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OnExitCodes {
    /// Name of the container. Default: the framework's container, or an init container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_name: Option<String>,

    /// Comparison of the exit code with the values. In matches if the code is one of them, NotIn if it is none of them.
    /// Exit code 0 never matches. Default: In.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<ExitCodeOperator>,

    /// Exit codes from 1 to 255: at least 1 and at most 64 of them.
    #[serde(default)]
    #[schemars(length(max = MAX_EXIT_CODES))]
    pub values: Vec<i32>,
}

/// A condition of a pod, other than the conditions that every pod has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OnPodCondition {
    /// Type of the condition, such as DisruptionTarget.
    #[serde(rename = "type", default)]
    pub type_: String,

    /// Status of the condition. Default: True.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// The replicas whose success makes the job succeed. It replaces the rule of the kind of job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobSuccessPolicy {
    /// Number of replicas of these roles that must succeed: All or Any. Default: All.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<SuccessOperator>,

    /// Roles whose replicas determine the success, at most 16. Default: all roles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_POLICY_ROLES))]
    pub roles: Vec<String>,
}

words! {
    /// The action after a failure.
    FailureAction {
        /// The job fails.
        FailJob,
        /// All replicas restart.
        RestartJob,
        /// All replicas of the role restart.
        RestartRole,
        /// Only the failed replica restarts.
        RestartReplica,
        /// The usual restart scope restarts, and the restart counts against no limit.
        Ignore,
    }
}

words! {
    /// The comparison of an exit code with a list of values.
    ExitCodeOperator {
        /// The code is one of the values.
        In,
        /// The code is none of the values.
        NotIn,
    }
}

words! {
    /// The number of replicas that must succeed.
    SuccessOperator {
        /// All replicas.
        All,
        /// Any replica.
        Any,
    }
}

impl FailureRule {
    /// Returns true if the rule applies to replicas of this role.
    pub fn applies_to(&self, role: &str) -> bool {
        self.roles.is_empty() || self.roles.iter().any(|own| own.eq_ignore_ascii_case(role))
    }
}

impl OnExitCodes {
    /// Returns true if the end of a container with this exit code, which is not 0, matches.
    pub fn matches(&self, container: &str, code: i32) -> bool {
        let any = |name: &String| name.is_empty() || name == container;
        let wants_in = self.operator != Some(ExitCodeOperator::NotIn);
        self.container_name.as_ref().is_none_or(any) && self.values.contains(&code) == wants_in
    }
}

impl OnPodCondition {
    /// Returns the status of the condition, with the default applied.
    pub fn status(&self) -> &str {
        self.status.as_deref().filter(|s| !s.is_empty()).unwrap_or("True")
    }
}
