//! What is remembered of a job between passes. Losing it costs a call, an event, or work in vain.

use tokio::time::Instant;

use crate::plan::{Plan, PlannedEvent};

use super::apply::Applied;
use super::doubt::Doubt;
use super::events;
use super::pace::{Pace, Refused, Writes};
use super::report::Written;

/// What is remembered of a job.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// Passes in a row that failed.
    pub(super) errors: u32,
    /// Until when no call is to be made for it: a server that is asked too much said so.
    pub(super) left_alone_until: Option<Instant>,
    /// When children were made.
    pub(super) pace: Pace,
    /// The children that could not be made.
    pub(super) refused: Refused,
    /// When the status was written.
    pub(super) writes: Writes,
    /// When a change of counts was first seen that is not written yet.
    pub(super) counts_since: Option<Instant>,
    /// Why it is not known what the server has of the job.
    pub(super) doubt: Option<Doubt>,
    /// The failures that events have told of.
    told: Vec<PlannedEvent>,
    /// The reasons of the notices that have been sent.
    noticed: Vec<String>,
    /// The planned events that have been sent without a status that remembers them.
    unstored: Vec<PlannedEvent>,
}

impl Memory {
    /// A pass has not failed. What it held back since earlier ones failed may fail yet.
    pub(super) fn succeeded(&mut self) {
        if !self.refused.is_waiting() {
            self.errors = 0;
        }
    }

    /// What is to be told of a pass that was not told before: what failed and what is noticed first, then what the
    /// plan says. `written` is what became of the plan's status; nothing if it could not be written.
    pub(super) fn news(
        &mut self,
        applied: &Applied,
        plan: &Plan,
        written: Option<&Written>,
    ) -> Vec<PlannedEvent> {
        let failures = events::of_failures(applied);
        let mut news: Vec<_> = failures
            .iter()
            .filter(|e| !self.told.contains(e))
            .cloned()
            .collect();
        if !applied.failures.is_empty() {
            self.told = failures;
        }
        if plan.notices.is_empty() {
            self.noticed.clear();
        }
        for notice in &plan.notices {
            if !self.noticed.contains(&notice.reason) {
                self.noticed.push(notice.reason.clone());
                news.push(notice.clone());
            }
        }
        match written {
            // A plan that is not stored is made again.
            None | Some(Written::Later(_) | Written::Unchanged) => {}
            Some(Written::Now) => news.extend(plan.events.iter().cloned()),
            Some(Written::Nothing | Written::Refused) => {
                let sent = std::mem::replace(&mut self.unstored, plan.events.clone());
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

    use super::super::apply::{ApplyError, ApplyFailure};
    use super::*;

    #[test]
    fn errors_are_forgotten_unless_some_of_what_failed_is_yet_to_be_tried() {
        let mut memory = Memory {
            errors: 3,
            ..Memory::default()
        };
        memory.refused.add(&[ApplyFailure {
            kind: ChildKind::Pod,
            creating: true,
            name: "a".to_owned(),
            problem: ApplyError::NameTaken,
        }]);
        memory.succeeded();
        assert_eq!(memory.errors, 3);
        memory.refused = Refused::default();
        memory.succeeded();
        assert_eq!(memory.errors, 0);
    }
}
