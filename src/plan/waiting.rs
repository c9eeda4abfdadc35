//! The reason why an active job has no running replica, for the status.

use crate::api::{ConditionType, JobStatus};

use super::reasons;
use super::types::{Plan, PlannedEvent, StatusChange};

/// The notices that do not explain why no replica runs.
const OTHER_NOTICES: [&str; 6] = [
    reasons::ACCELERATOR_NOT_ADDED,
    reasons::CONTAINERS_STILL_RUNNING,
    reasons::PARTLY_SCHEDULED,
    // The condition Restarting says so.
    reasons::RESTART_BACK_OFF,
    reasons::SET_POD_TEMPLATE_RESTART_POLICY,
    reasons::SET_POD_TEMPLATE_SCHEDULER_NAME,
];

/// The start of the reasons of refused creates, which only the controller observes.
const FAILED_CREATE: &str = "FailedCreate";

/// Returns why no replica of an active job runs, from the notices of the plan. The stored reason of a refused create
/// remains while pods are missing, because a plan does not know how its creates end.
pub(super) fn reason(notices: &[PlannedEvent], stored: &str, lacks_pods: bool) -> String {
    let mut causes = notices.iter().map(|notice| notice.reason.as_str());
    match causes.find(|reason| !OTHER_NOTICES.contains(reason)) {
        // A kubelet alternates between both, and each change would be a write.
        Some("ErrImagePull") => "ImagePullBackOff".to_owned(),
        Some(reason) => reason.to_owned(),
        None if lacks_pods && stored.starts_with(FAILED_CREATE) => stored.to_owned(),
        None => String::new(),
    }
}

impl Plan {
    /// Records in the next status that the API server refuses to create children, unless a replica runs. `stored` is
    /// the stored status, and `reason` that of the event about the failure, such as `FailedCreatePod`.
    pub fn report_refusal(&mut self, stored: &JobStatus, reason: &str) {
        let status = self.status.as_ref().map_or(stored, |change| &change.status);
        let waits = !status.is_finished()
            && !status.is(ConditionType::Suspended)
            && (status.ready.is_empty() || status.ready.starts_with("0/"));
        if !waits || status.waiting_reason == reason {
            return;
        }
        let status = JobStatus {
            waiting_reason: reason.to_owned(),
            ..status.clone()
        };
        let urgent = self.status.as_ref().is_some_and(|change| change.urgent);
        // The plan may only have removed the reason, which it does not know.
        self.status = Some(StatusChange { status, urgent }).filter(|change| change.status != *stored);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notices(reasons: &[&str]) -> Vec<PlannedEvent> {
        let notice = |reason: &&str| PlannedEvent {
            warning: true,
            reason: (*reason).to_owned(),
            message: String::new(),
        };
        reasons.iter().map(notice).collect()
    }

    #[test]
    fn the_first_notice_about_waiting_pods_is_the_reason() {
        let both = notices(&[
            reasons::SET_POD_TEMPLATE_RESTART_POLICY,
            "Unschedulable",
            "PodGated",
        ]);
        assert_eq!(reason(&both, "", false), "Unschedulable");
        assert_eq!(reason(&notices(&["ErrImagePull"]), "", false), "ImagePullBackOff");
        assert_eq!(reason(&[], "Unschedulable", true), "");
    }

    #[test]
    fn a_refused_create_remains_the_reason_while_pods_are_missing() {
        assert_eq!(reason(&[], "FailedCreatePod", true), "FailedCreatePod");
        assert_eq!(reason(&[], "FailedCreatePod", false), "");
    }

    #[test]
    fn a_refusal_is_reported_once_and_only_if_no_replica_runs() {
        let status = |ready: &str| JobStatus {
            ready: ready.to_owned(),
            ..JobStatus::default()
        };
        let mut plan = Plan::default();
        plan.report_refusal(&status("1/2"), "FailedCreatePod");
        assert_eq!(plan.status, None);
        plan.report_refusal(&status("0/2"), "FailedCreatePod");
        let change = plan.status.take().unwrap();
        assert_eq!(
            (change.status.waiting_reason.as_str(), change.urgent),
            ("FailedCreatePod", false)
        );
        plan.report_refusal(&change.status, "FailedCreatePod");
        assert_eq!(plan.status, None);
        // A plan that removes the reason writes nothing either.
        plan.status = Some(StatusChange {
            status: status("0/2"),
            urgent: false,
        });
        plan.report_refusal(&change.status, "FailedCreatePod");
        assert_eq!(plan.status, None);
    }
}
