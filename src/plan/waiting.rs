//! The reason why an active job waits, for the status.

use jiff::Timestamp;

use crate::api::{ConditionType, JobStatus};

use super::facts::whole_second;
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

/// Returns why an active job waits, from the notices about its replicas. The stored reason of a refused create remains
/// while children are missing, because a plan does not know how its creates end.
pub(super) fn reason<'n>(
    notices: impl Iterator<Item = &'n PlannedEvent>,
    stored: &str,
    lacks_children: bool,
) -> String {
    let mut causes = notices.map(|notice| notice.reason.as_str());
    match causes.find(|reason| !OTHER_NOTICES.contains(reason)) {
        // A kubelet alternates between both, and each change would be a write.
        Some("ErrImagePull") => "ImagePullBackOff".to_owned(),
        Some(reason) => reason.to_owned(),
        None if lacks_children && stored.starts_with(FAILED_CREATE) => stored.to_owned(),
        None => String::new(),
    }
}

impl Plan {
    /// Records in the next status that the API server refuses to create, change or delete children. `stored` is the stored
    /// status, and `reason` that of the event about the failure, such as `FailedCreatePod`.
    pub fn report_refusal(&mut self, stored: &JobStatus, reason: &str, now: Timestamp) {
        let status = self.status.as_ref().map_or(stored, |change| &change.status);
        let is_active = |status: &JobStatus| !status.is_finished() && !status.is(ConditionType::Suspended);
        // After the end or a suspension other changes are due, which may succeed.
        let ends = is_active(stored) && !is_active(status);
        if ends || status.waiting_reason == reason {
            return;
        }
        let mut status = status.clone();
        status.waiting_reason.clone_from(&stored.waiting_reason);
        status.waiting_since.clone_from(&stored.waiting_since);
        let now = whole_second(now);
        status.set_waiting(reason.to_owned(), now);
        let urgent = self.status.as_ref().is_some_and(|change| change.urgent);
        // The plan may only have removed the reason, which it does not know.
        self.status = Some(StatusChange {
            status,
            urgent,
            at_most_every: None,
        })
        .filter(|change| change.status != *stored);
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
        assert_eq!(reason(both.iter(), "", false), "Unschedulable");
        assert_eq!(
            reason(notices(&["ErrImagePull"]).iter(), "", false),
            "ImagePullBackOff"
        );
        assert_eq!(reason([].iter(), "Unschedulable", true), "");
    }

    #[test]
    fn a_refused_create_remains_the_reason_while_pods_are_missing() {
        assert_eq!(reason([].iter(), "FailedCreatePod", true), "FailedCreatePod");
        assert_eq!(reason([].iter(), "FailedCreatePod", false), "");
    }

    #[test]
    fn a_refusal_is_reported_once_with_its_time_also_while_replicas_run() {
        let status = JobStatus {
            ready: "1/2".to_owned(),
            ..JobStatus::default()
        };
        let [first, later] = [1, 9].map(|second| Timestamp::from_second(second).unwrap());
        let mut plan = Plan::default();
        plan.report_refusal(&status, "FailedCreatePod", first);
        let change = plan.status.take().unwrap();
        assert!(!change.urgent);
        let stored = change.status;
        let since = stored.waiting_since.clone().map(|time| time.0);
        assert_eq!((&*stored.waiting_reason, since), ("FailedCreatePod", Some(first)));
        plan.report_refusal(&stored, "FailedCreatePod", later);
        assert_eq!(plan.status, None);
        // A plan that removes the reason writes nothing either.
        let urgent = false;
        plan.status = Some(StatusChange {
            status,
            urgent,
            at_most_every: None,
        });
        plan.report_refusal(&stored, "FailedCreatePod", later);
        assert_eq!(plan.status, None);
    }
}
