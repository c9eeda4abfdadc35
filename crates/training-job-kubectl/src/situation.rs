//! The situation of a job in a few words (pure).

use jiff::Timestamp;
use serde::Serialize;
use training_job::api::labels::queue;
use training_job::api::{ConditionType, JobStatus};
use training_job::nearest;
use training_job_review::duration::short_time;

use crate::stored::StoredJob;

/// The states in the order in which the first true condition decides.
const STATES: [ConditionType; 8] = [
    ConditionType::Failed,
    ConditionType::Succeeded,
    ConditionType::HookPanicked,
    ConditionType::Suspended,
    ConditionType::Restarting,
    ConditionType::Stalled,
    ConditionType::Running,
    ConditionType::Created,
];

/// Returns the state of this name in any case. A job is also `New` or `Deleting`.
///
/// # Errors
/// No job has such a state.
pub(super) fn state_of_argument(name: &str) -> Result<String, String> {
    let all: Vec<&str> = ["New", "Deleting"]
        .into_iter()
        .chain(STATES.iter().rev().map(|state| state.as_str()))
        .collect();
    let known = all.iter().find(|state| state.eq_ignore_ascii_case(name));
    known.map(|state| (*state).to_owned()).ok_or_else(|| {
        let near = nearest(name, all.iter().copied());
        let near = near.map(|state| format!("did you mean {state}? "));
        format!("{}must be one of {}", near.unwrap_or_default(), all.join(", "))
    })
}

/// The numbers of a role's replicas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RoleCount {
    pub(crate) role: String,
    /// The replicas that are ready, or that run if the kind has no role that waits for readiness.
    pub(crate) ready: i32,
    pub(crate) replicas: i64,
    pub(crate) succeeded: i32,
    pub(crate) failed: i32,
}

impl RoleCount {
    /// Returns `Worker 2/4`, and the replicas that have ended.
    pub(crate) fn text(&self) -> String {
        let ended = [(self.succeeded, "succeeded"), (self.failed, "failed")];
        let ended = ended.iter().filter(|(count, _)| *count > 0);
        let ended: Vec<String> = ended.map(|(count, word)| format!("{count} {word}")).collect();
        let text = format!("{} {}/{}", self.role, self.ready, self.replicas);
        match ended.is_empty() {
            true => text,
            false => format!("{text} ({})", ended.join(", ")),
        }
    }
}

impl StoredJob {
    /// Returns the state in one word: that of the conditions, `Deleting`, or `New` if no operator has seen the job.
    pub(crate) fn state(&self) -> &'static str {
        if !self.object["metadata"]["deletionTimestamp"].is_null() {
            return "Deleting";
        }
        let state = STATES.into_iter().find(|state| self.status.is(*state));
        state.map_or("New", ConditionType::as_str)
    }

    /// Returns the numbers of replicas by role.
    pub(crate) fn role_counts(&self) -> Vec<RoleCount> {
        let count = |role: &str, replicas: Option<u32>| {
            let mut all = self.status.replica_statuses.iter();
            let status = all
                .find(|(name, _)| name.eq_ignore_ascii_case(role))
                .map(|(_, status)| status.clone());
            let status = status.unwrap_or_default();
            let known = i64::from(status.active) + i64::from(status.succeeded) + i64::from(status.failed);
            RoleCount {
                role: role.to_owned(),
                ready: status.ready.unwrap_or(status.active),
                replicas: replicas.map_or(known, i64::from),
                succeeded: status.succeeded,
                failed: status.failed,
            }
        };
        match &self.outline {
            Ok(outline) => {
                let roles = outline.roles.iter().filter(|role| role.replicas > 0);
                roles.map(|role| count(&role.name, Some(role.replicas))).collect()
            }
            Err(_) => self
                .status
                .replica_statuses
                .keys()
                .map(|role| count(role, None))
                .collect(),
        }
    }

    /// Returns the seconds from the job's start to its end, or until now.
    pub(crate) fn duration(&self, now: Timestamp) -> Option<i64> {
        let start = self.status.start_time.as_ref()?.0;
        let end = self.status.completion_time.as_ref().map_or(now, |time| time.0);
        Some(end.duration_since(start).as_secs().max(0))
    }

    /// Returns the seconds since the job's creation.
    pub(crate) fn age(&self, now: Timestamp) -> Option<i64> {
        Some(now.duration_since(self.created()?).as_secs().max(0))
    }

    /// Returns the reason for the state in a few words; empty if the state needs none.
    pub(crate) fn why(&self) -> String {
        let status = &self.status;
        let failure = status.failure.as_ref().map(|failure| failure.summary.clone());
        match self.state() {
            "New" => "not seen by an operator".to_owned(),
            "Failed" => failure.unwrap_or_else(|| condition_text(status, ConditionType::Failed)),
            "HookPanicked" => condition_text(status, ConditionType::HookPanicked),
            "Restarting" => failure.unwrap_or_else(|| condition_text(status, ConditionType::Restarting)),
            "Stalled" => {
                let text = condition_text(status, ConditionType::Stalled);
                let (_, why) = text.split_once(" is stalled: ").unwrap_or(("", &text));
                why.to_owned()
            }
            "Suspended" => match self.queue() {
                Some(queue) => format!("waits in queue {queue}"),
                None => "spec has suspend: true".to_owned(),
            },
            "Created" | "Running" | "Succeeded" if !status.waiting_reason.is_empty() => {
                status.waiting_reason.clone()
            }
            "Running" => failure
                .map(|failure| format!("restarted after {failure}"))
                .unwrap_or_default(),
            _ => String::new(),
        }
    }

    /// Returns the progress in a few characters: `1200/5000`, or `3m10s ago` if only the time of the last line is known.
    pub(crate) fn progress(&self, now: Timestamp) -> String {
        let Some(progress) = &self.status.progress else {
            return String::new();
        };
        match &progress.at {
            Some(at) if progress.summary.is_empty() => {
                format!("{} ago", short_time(now.duration_since(at.0).as_secs().max(0)))
            }
            _ => progress.summary.clone(),
        }
    }

    /// Returns the queue of Kueue that admits the job.
    pub(crate) fn queue(&self) -> Option<String> {
        let meta = serde_json::from_value(self.object["metadata"].clone()).ok()?;
        queue(&meta).map(str::to_owned)
    }

    /// Returns the maximum number of restarts that the run policy or the failure policy allows.
    pub(crate) fn restart_limit(&self) -> Option<i32> {
        let policy = &self.outline.as_ref().ok()?.policy;
        let limits = [policy.backoff_limit, policy.failure.max_restarts];
        limits.into_iter().flatten().min()
    }
}

/// Returns the reason of a condition, with the first line of its message.
fn condition_text(status: &JobStatus, type_: ConditionType) -> String {
    let Some(condition) = status.condition(type_) else {
        return String::new();
    };
    match condition.message.lines().next() {
        Some(line) if !line.is_empty() => line.to_owned(),
        _ => condition.reason.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::state_of_argument;

    #[test]
    fn a_misspelled_state_has_a_suggestion() {
        assert_eq!(state_of_argument("failed").unwrap(), "Failed");
        let error = state_of_argument("Fialed").unwrap_err();
        assert!(
            error.starts_with("did you mean Failed? must be one of New, "),
            "{error}"
        );
        let error = state_of_argument("x").unwrap_err();
        assert!(error.starts_with("must be one of New, "), "{error}");
    }
}
