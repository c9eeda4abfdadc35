//! The state of a job that is kept between reconciles. It is only in memory: its loss costs a call, a duplicate event, or
//! repeated work.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use kube_follow::CallError;
use tokio::time::Instant;

use training_job::api::JobStatus;
use training_job::plan::{ChildKind, Plan, PlannedEvent};

use super::answers::Answer;
use super::cache::stored_job::StoredJob;

use super::events;
use super::metrics::WaitingJob;
use super::quota_queue::{MAX_WAIT_UNTRIED, Scope};
use super::rate_limit::{CreateRate, PatchRate, RefusedChildren, WriteRate};
use super::steps::{Action, Applied, ApplyError, ApplyFailure, StatusWrite};

/// The reason why the cached job may differ from the one on the server. The job is read again before it is planned, because
/// it may have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Uncertain {
    /// The server has another version of the job than this one. The watch may be dead, or a response was lost.
    VersionMismatch(Option<String>),
    /// A write got no response, or a list began before the response arrived.
    Unanswered,
}

impl Uncertain {
    /// Returns the uncertainty about a job after a failed write, if any.
    pub(super) fn after_error(error: &CallError, job: &StoredJob) -> Option<Self> {
        match Answer::from(error) {
            Answer::NotFound | Answer::AlreadyExists | Answer::Conflict => {
                Some(Self::VersionMismatch(job.meta().resource_version.clone()))
            }
            Answer::Invalid | Answer::Rejected | Answer::Denied => None,
            Answer::Unknown => Some(Self::Unanswered),
        }
    }

    /// Returns true if the cached job is still uncertain.
    pub(super) fn still_applies(&self, cached: &StoredJob) -> bool {
        match self {
            Self::VersionMismatch(version) => *version == cached.meta().resource_version,
            Self::Unanswered => true,
        }
    }
}

/// The state of a job between reconciles.
#[derive(Clone, Debug, Default)]
pub(super) struct JobState {
    /// Number of consecutive failed reconciles.
    pub(super) failures: u32,
    /// Time since when the job waits for the deletion of objects of a predecessor.
    waits_since: Option<Instant>,
    /// Time until which no call is made for the job, because the server requested a delay.
    pub(super) blocked_until: Option<Instant>,
    /// Set while the job is active and has no pods.
    pub(super) without_pods: Option<Arc<WaitingJob>>,
    creates: CreateRate,
    pub(super) refused: RefusedChildren,
    pub(super) status_writes: WriteRate,
    patches: PatchRate,
    /// Time of the last write of the status.
    pub(super) status_written_at: Option<Instant>,
    /// Time of the first change of counts that is not written yet.
    pub(super) counts_changed_at: Option<Instant>,
    pub(super) uncertain: Option<Uncertain>,
    /// The reason of the event about refused changes of children, such as FailedCreatePod, until the plan changes none or
    /// they succeed.
    pub(super) refusal: Option<String>,
    /// The extent of the quota for which the job waits, if any. Unset if the plan creates nothing or a create succeeds.
    pub(super) quota: Option<Scope>,
    /// The reasons and causes of the latest failures that have been reported.
    reported_failures: VecDeque<(String, String)>,
    /// The reasons of the notices that have been sent.
    notice_reasons: Vec<String>,
    /// The planned events that were sent without a status write. The status does not show that they were sent.
    unstored_events: Vec<PlannedEvent>,
    /// The last status whose write got no answer, and its events. They are sent once the job is read with this status.
    unanswered: Option<(JobStatus, Vec<PlannedEvent>)>,
}

/// Maximum number of failures that are remembered, so that those that alternate are not reported again.
const MAX_REPORTED_FAILURES: usize = 8;

/// Time after which a job that waits for objects of a predecessor reports it. It is longer than pods usually take to end.
const MAX_SILENT_WAIT: Duration = Duration::from_secs(120);

impl JobState {
    /// Records a reconcile without failures. The number of failures is kept while refused children wait for their retry.
    pub(super) fn succeeded(&mut self) {
        if !self.refused.is_waiting() {
            self.failures = 0;
        }
    }

    /// Removes the creates and patches from `plan` for which it is too early. Returns when the first of them is due.
    pub(super) fn defer_creates(&mut self, generation: Option<i64>, plan: &mut Plan) -> Option<Instant> {
        if plan.creates() == 0 {
            self.quota = None;
        }
        if !plan.changes_children() {
            self.refusal = None;
        }
        let refused = self.refused.defer_creates(generation, plan);
        let limited = self.creates.defer_creates(plan);
        let patches = self.patches.defer_patches(plan);
        [refused, limited, patches].into_iter().flatten().min()
    }

    /// Lets the job wait in the queue of a quota, without a try at first.
    pub(super) fn queue_up(&mut self, generation: Option<i64>, plan: &Plan, scope: Scope) {
        let names = plan.create_pods.iter().map(|pod| pod.name.clone());
        let retry_at = Instant::now() + MAX_WAIT_UNTRIED;
        self.refused.hold(generation, ChildKind::Pod, names, retry_at);
        self.quota = Some(scope);
    }

    /// Records the created, patched and refused children.
    pub(super) fn record(&mut self, applied: &Applied, namespace: &str) {
        if applied.has(Action::Create) || applied.has(Action::Adopt) {
            self.creates.record();
            (self.refusal, self.quota) = (None, None);
        }
        let refused = applied.failures.iter().filter(|failure| failure.is_refused());
        // A job without all of its pods makes less progress than one with outdated objects.
        if let Some(failure) = refused.clone().min_by_key(|f| f.action != Action::Create) {
            self.refusal = Some(events::failure_reason(failure));
        } else if applied.failures.is_empty() && applied.deferred.is_none() && applied.acted {
            self.refusal = None;
        }
        let mut creates = refused.filter(|failure| failure.action == Action::Create);
        let lacking = creates.find(|failure| failure.lacks_capacity());
        self.quota = lacking.map(|f| f.scope(namespace)).or(self.quota.take());
        self.patches.record(&applied.done);
        self.refused.add(&applied.failures);
    }

    /// Returns the events of a reconcile that have not been sent yet: failures and notices first, then the events of the
    /// plan. `stored` is the status before the write, and `written` the result of the write; None if it failed.
    pub(super) fn new_events(
        &mut self,
        applied: &Applied,
        plan: &Plan,
        stored: &JobStatus,
        written: Option<&StatusWrite>,
    ) -> Vec<PlannedEvent> {
        let is_wait = |failure: &ApplyFailure| matches!(failure.problem, ApplyError::StillThere);
        if applied.failures.iter().any(is_wait) {
            self.waits_since.get_or_insert_with(Instant::now);
        } else if plan.creates() == 0 {
            self.waits_since = None;
        }
        let has_waited_long = self
            .waits_since
            .is_some_and(|since| since.elapsed() >= MAX_SILENT_WAIT);
        let mut news = Vec::new();
        for (event, cause) in events::for_failures(applied, has_waited_long) {
            let reported = (event.reason.clone(), cause);
            if !self.reported_failures.contains(&reported) {
                self.reported_failures.push_back(reported);
                news.push(event);
            }
        }
        let surplus = self.reported_failures.len().saturating_sub(MAX_REPORTED_FAILURES);
        self.reported_failures.drain(..surplus);
        if plan.notices.is_empty() {
            self.notice_reasons.clear();
        }
        for notice in &plan.notices {
            if !self.notice_reasons.contains(&notice.reason) {
                self.notice_reasons.push(notice.reason.clone());
                news.push(notice.clone());
            }
        }
        if let Some((_, late)) = self.unanswered.take_if(|(status, _)| status == stored) {
            news.extend(late);
        }
        match written {
            None if self.uncertain == Some(Uncertain::Unanswered) => {
                let status = plan.status.as_ref().map(|change| change.status.clone());
                self.unanswered = status.map(|status| (status, plan.events.clone()));
            }
            // The status was not stored, so the next plan has the same events.
            None | Some(StatusWrite::Deferred(_) | StatusWrite::Ignored) => {}
            Some(StatusWrite::Stored) => {
                self.unanswered = None;
                news.extend(plan.events.iter().cloned());
            }
            Some(StatusWrite::NotNeeded | StatusWrite::Refused) => {
                let sent = std::mem::replace(&mut self.unstored_events, plan.events.clone());
                let unsent = plan.events.iter().filter(|e| !sent.contains(e));
                news.extend(unsent.cloned());
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_reset_unless_refused_children_wait_for_a_retry() {
        let mut state = JobState {
            failures: 3,
            ..JobState::default()
        };
        state.refused.add(&[ApplyFailure {
            kind: ChildKind::Pod,
            action: Action::Create,
            name: "a".to_owned(),
            problem: ApplyError::NameTaken(None),
        }]);
        state.succeeded();
        assert_eq!(state.failures, 3);
        state.refused = RefusedChildren::default();
        state.succeeded();
        assert_eq!(state.failures, 0);
    }
}
