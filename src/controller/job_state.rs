//! What is remembered of a job between reconciles. Losing it costs a call, an event, or work done twice.

use std::time::Duration;

use kube::Resource;
use kube_follow::CallError;
use tokio::time::Instant;

use crate::job::TrainingJob;
use crate::plan::{Plan, PlannedEvent};

use super::answers::Answer;
use super::cache::stored_job::StoredJob;

use super::events;
use super::pace::{CreateRate, PatchRate, RefusedChildren, WriteRate};
use super::steps::{Action, Applied, ApplyError, ApplyFailure, Written};

/// Why the cached job may differ from the server's. Nothing is done for it until it was read again: it may have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Uncertain {
    /// The server says that the job is not at this version. The watch may be dead, and the answer to an own write lost.
    NotAt(Option<String>),
    /// An own write was not answered, or a list began before the answer came.
    Unanswered,
}

impl Uncertain {
    /// What is uncertain about a job after a write of it failed.
    pub(super) fn after_error<J: TrainingJob>(error: &CallError, job: &StoredJob<J>) -> Option<Self> {
        match Answer::from(error) {
            Answer::NotFound | Answer::AlreadyExists | Answer::Conflict => {
                Some(Self::NotAt(job.meta().resource_version.clone()))
            }
            Answer::Invalid | Answer::Rejected | Answer::Denied => None,
            Answer::Unknown => Some(Self::Unanswered),
        }
    }

    /// Whether this job, taken from the cache, is still uncertain.
    pub(super) fn concerns<J: TrainingJob>(&self, cached: &StoredJob<J>) -> bool {
        match self {
            Self::NotAt(version) => *version == cached.meta().resource_version,
            Self::Unanswered => true,
        }
    }
}

/// What is remembered of a job.
#[derive(Clone, Debug, Default)]
pub(super) struct JobState {
    /// Reconciles in a row that failed.
    pub(super) failures: u32,
    /// Since when it waits for objects of a predecessor to go.
    waits_since: Option<Instant>,
    /// Until when no call is made for the job: the server asked for that.
    pub(super) blocked_until: Option<Instant>,
    /// When children were created.
    creates: CreateRate,
    /// The children that were refused.
    pub(super) refused: RefusedChildren,
    /// When the status was written.
    pub(super) status_writes: WriteRate,
    /// When its objects were patched.
    patches: PatchRate,
    /// Since when there has been a change of counts that is not written yet.
    pub(super) counts_changed_at: Option<Instant>,
    /// Why the cached job may differ from the server's.
    pub(super) uncertain: Option<Uncertain>,
    /// The events about failures that have been sent.
    failure_events: Vec<PlannedEvent>,
    /// The reasons of the notices that have been sent.
    notice_reasons: Vec<String>,
    /// The planned events that have been sent without a status that remembers them.
    unstored_events: Vec<PlannedEvent>,
}

/// For how long a job waits for objects of a predecessor without a word: longer than pods usually take to end.
const LONG_WAIT: Duration = Duration::from_secs(120);

impl JobState {
    /// A reconcile has not failed. What it deferred since earlier ones failed may fail yet.
    pub(super) fn succeeded(&mut self) {
        if !self.refused.is_waiting() {
            self.failures = 0;
        }
    }

    /// Takes the creates and patches out of `plan` for which it is too early, and says when the first of them may be
    /// tried.
    pub(super) fn defer_creates(&mut self, generation: Option<i64>, plan: &mut Plan) -> Option<Instant> {
        let refused = self.refused.defer_creates(generation, plan);
        let limited = self.creates.defer_creates(plan);
        let patches = self.patches.defer_patches(plan);
        [refused, limited, patches].into_iter().flatten().min()
    }

    /// Remembers what was created, and what was refused.
    pub(super) fn record(&mut self, applied: &Applied) {
        if applied.has(Action::Create) || applied.has(Action::Adopt) {
            self.creates.record();
        }
        self.patches.record(&applied.done);
        self.refused.add(&applied.failures);
    }

    /// The events of a reconcile that have not been sent yet: failures and notices first, then the plan's own.
    /// `written` is what became of the plan's status; None if it could not be written.
    pub(super) fn new_events(
        &mut self,
        applied: &Applied,
        plan: &Plan,
        written: Option<&Written>,
    ) -> Vec<PlannedEvent> {
        let is_wait = |failure: &ApplyFailure| matches!(failure.problem, ApplyError::StillThere);
        if applied.failures.iter().any(is_wait) {
            self.waits_since.get_or_insert_with(Instant::now);
        } else if plan.creates() == 0 {
            self.waits_since = None;
        }
        let has_waited_long = self.waits_since.is_some_and(|since| since.elapsed() >= LONG_WAIT);
        let failures = events::for_failures(applied, has_waited_long);
        let mut news: Vec<_> = failures
            .iter()
            .filter(|e| !self.failure_events.contains(e))
            .cloned()
            .collect();
        if !applied.failures.is_empty() {
            self.failure_events = failures;
        }
        if plan.notices.is_empty() {
            self.notice_reasons.clear();
        }
        for notice in &plan.notices {
            if !self.notice_reasons.contains(&notice.reason) {
                self.notice_reasons.push(notice.reason.clone());
                news.push(notice.clone());
            }
        }
        match written {
            // A plan that is not stored is made again.
            None | Some(Written::Later(_) | Written::Unchanged) => {}
            Some(Written::Now) => news.extend(plan.events.iter().cloned()),
            Some(Written::Nothing | Written::Refused) => {
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
    use crate::plan::ChildKind;

    use super::*;

    #[test]
    fn errors_are_forgotten_unless_some_of_what_failed_is_yet_to_be_tried() {
        let mut state = JobState {
            failures: 3,
            ..JobState::default()
        };
        state.refused.add(&[ApplyFailure {
            kind: ChildKind::Pod,
            action: Action::Create,
            name: "a".to_owned(),
            problem: ApplyError::NameTaken,
        }]);
        state.succeeded();
        assert_eq!(state.failures, 3);
        state.refused = RefusedChildren::default();
        state.succeeded();
        assert_eq!(state.failures, 0);
    }
}
