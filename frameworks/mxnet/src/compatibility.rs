//! Selects the operator whose rules apply to a job where its two former operators differed.

use training_job::api::{CleanPodPolicy, RunPolicy};

use crate::MXJobSpec;
use crate::definition::OLDER;

/// The operator whose rules apply to a job. It selects the exit codes that restart a replica with the restart policy
/// `ExitCode`, and the default clean-up policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compatibility {
    /// The stand-alone mxnet-operator: 130, 137, 138 and 143 restart a replica, and all pods are deleted at the end.
    MXNetOperator,
    /// The training operator: all exit codes of 128 or more restart a replica. The operator's settings select the
    /// pods that are deleted at the end.
    TrainingOperator,
}

impl Compatibility {
    pub(crate) const WORDS: [&str; 2] = ["MXNetOperator", "TrainingOperator"];

    /// Returns true if `ExitCode` restarts a replica that ended with this exit code. The stand-alone operator
    /// documents its codes: interrupted, killed, terminated, and 138 for the user's own purposes.
    pub fn is_retryable(self, exit_code: i32) -> bool {
        match self {
            Self::MXNetOperator => matches!(exit_code, 130 | 137 | 138 | 143),
            Self::TrainingOperator => exit_code >= 128,
        }
    }

    /// Returns the default clean-up policy of this operator, unless the operator's settings decide.
    pub(crate) fn clean_up(self) -> Option<CleanPodPolicy> {
        (self == Self::MXNetOperator).then_some(CleanPodPolicy::All)
    }

    fn describe(self) -> (&'static str, &'static str) {
        match self {
            Self::MXNetOperator => (
                "the stand-alone mxnet-operator",
                "under restart policy ExitCode, the exit codes 130, 137, 138 and 143 restart a replica; the default \
                 cleanPodPolicy is All",
            ),
            Self::TrainingOperator => (
                "the training operator",
                "under restart policy ExitCode, exit codes of 128 or more restart a replica; the default cleanPodPolicy \
                 is the operator's",
            ),
        }
    }
}

/// The locations at which a job sets a policy.
struct PolicyLocation {
    field: &'static str,
    at_top: bool,
    in_run_policy: bool,
}

impl MXJobSpec {
    /// Returns the operator whose rules apply to the job. A job that sets `compatibility` selects it. Otherwise it is
    /// the stand-alone operator if there are policies at the top of the spec and none in `runPolicy`, and else the
    /// training operator. For older versions `compatibility` already has its default at this point.
    pub fn compatibility_mode(&self) -> Compatibility {
        match self.compatibility.as_str() {
            "MXNetOperator" => Compatibility::MXNetOperator,
            "TrainingOperator" => Compatibility::TrainingOperator,
            _ => {
                let locations = self.policy_locations();
                if locations.iter().any(|p| p.at_top) && locations.iter().all(|p| !p.in_run_policy) {
                    Compatibility::MXNetOperator
                } else {
                    Compatibility::TrainingOperator
                }
            }
        }
    }

    /// Describes the selected rules, the reason for them and their consequences as text. Returns `None` if nothing
    /// distinguishes the job from other jobs. The job was written under `version`.
    pub(crate) fn describe_compatibility(&self, version: &str) -> Option<String> {
        let mode = self.compatibility_mode();
        let locations = self.policy_locations();
        let at_top: Vec<_> = locations.iter().filter(|p| p.at_top).map(|p| p.field).collect();
        let because = match (self.compatibility.as_str(), mode, &at_top[..]) {
            ("", _, []) => return None,
            ("", Compatibility::TrainingOperator, _) => "runPolicy sets policies".to_owned(),
            ("", Compatibility::MXNetOperator, [only]) => format!("{only} is at the top of the spec"),
            ("", Compatibility::MXNetOperator, fields) => {
                format!("{} are at the top of the spec", fields.join(", "))
            }
            (_, Compatibility::MXNetOperator, _) if OLDER.contains(&version) => {
                format!("it was written under {version}")
            }
            _ => format!("spec.compatibility is {}", self.compatibility),
        };
        let (operator, follows) = mode.describe();
        Some(format!(
            "Rules of {operator} apply, because {because}: {follows}."
        ))
    }

    /// Returns true if `field` of the run policy is set only at the top of the spec.
    pub(crate) fn has_at_top(&self, field: &str) -> bool {
        let locations = self.policy_locations();
        locations
            .iter()
            .any(|p| p.field == field && p.at_top && !p.in_run_policy)
    }

    fn policy_locations(&self) -> [PolicyLocation; 5] {
        let nested = |is_set: fn(&RunPolicy) -> bool| self.run_policy.as_ref().is_some_and(is_set);
        let location = |field, at_top, in_run_policy| PolicyLocation {
            field,
            at_top,
            in_run_policy,
        };
        [
            location(
                "cleanPodPolicy",
                self.clean_pod_policy.is_some(),
                nested(|p| p.clean_pod_policy.is_some()),
            ),
            location(
                "ttlSecondsAfterFinished",
                self.ttl_seconds_after_finished.is_some(),
                nested(|p| p.ttl_seconds_after_finished.is_some()),
            ),
            location(
                "activeDeadlineSeconds",
                self.active_deadline_seconds.is_some(),
                nested(|p| p.active_deadline_seconds.is_some()),
            ),
            location(
                "backoffLimit",
                self.backoff_limit.is_some(),
                nested(|p| p.backoff_limit.is_some()),
            ),
            location(
                "schedulingPolicy",
                self.scheduling_policy.is_some(),
                nested(|p| p.scheduling_policy.is_some()),
            ),
        ]
    }
}
