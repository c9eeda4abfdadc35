//! The restart policies of pods and containers.

use k8s_openapi::api::core::v1::{Container, Pod};
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RestartPolicy {
    Always,
    OnFailure,
    Never,
}

impl RestartPolicy {
    pub(super) fn from_pod(pod: &Pod) -> Self {
        Self::named(pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()))
    }

    fn named(word: Option<&str>) -> Self {
        match word {
            Some("Never") => Self::Never,
            Some("OnFailure") => Self::OnFailure,
            _ => Self::Always,
        }
    }
}

/// The restart policy of a container that has one of its own.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OwnRestart {
    pub(super) policy: RestartPolicy,
    rules: Value,
}

impl OwnRestart {
    pub(super) fn of(container: &Container) -> Option<Self> {
        let policy = RestartPolicy::named(Some(container.restart_policy.as_deref()?));
        // The types of older Kubernetes versions do not have the rules.
        let mut container = serde_json::to_value(container).ok()?;
        let rules = container["restartPolicyRules"].take();
        Some(Self { policy, rules })
    }

    /// Returns true if a rule restarts the container after this exit code.
    pub(super) fn has_rule(&self, exit_code: i32) -> bool {
        let mut rules = self.rules.as_array().into_iter().flatten();
        rules.any(|rule| {
            let codes = &rule["exitCodes"];
            let mut values = codes["values"].as_array().into_iter().flatten();
            let is_listed = values.any(|value| *value == exit_code);
            match codes["operator"].as_str() {
                Some("In") => is_listed,
                Some("NotIn") => !is_listed,
                _ => false,
            }
        })
    }
}
