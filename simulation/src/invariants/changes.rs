//! The list of the invariants that are checked at each change, and the properties of a change that they read.

use kube_memory::{Action, Object};

use super::timeline::JobTimeline;
use super::{Check, CheckedChange, children, conditions, gangs, policies, queue, stalls, statuses};
use crate::call::CurrentCall;
use crate::world::job;

/// All invariants of changes, with their numbers in docs/maintainers/reliability.md.
pub(crate) const ALL: &[(&str, Check)] = &[
    ("I1", children::unique_rank),
    ("I2", children::no_excess),
    ("I3", statuses::final_is_final),
    ("I3", children::nothing_after_the_end),
    ("I4", children::no_success_run_again),
    ("I5", children::nothing_after_deletion),
    ("I6", children::foreign_untouched),
    ("I9", children::no_churn),
    ("I10", statuses::honest_counters),
    ("I10", statuses::honest_conditions),
    ("I10", statuses::honest_successes),
    ("I11", children::justified_deletion),
    ("I13", children::environment_is_there),
    ("I19", children::others_started_first),
    ("I20", policies::are_kept),
    ("I21", queue::is_obeyed),
    ("I22", gangs::is_obeyed),
    ("I23", conditions::are_in_order),
    ("I25", policies::no_healthy_pod_is_lost),
    ("I26", children::sidecars_have_time),
    ("I27", stalls::are_true),
];

impl CheckedChange<'_> {
    pub(super) fn object(&self) -> &Object {
        self.change.object()
    }

    /// Returns the object before the change, or the object itself if it is new.
    pub(super) fn before(&self) -> &Object {
        self.change.previous().unwrap_or(self.change.object())
    }

    pub(super) fn is_job(&self) -> bool {
        job::PLURALS.contains(&self.change.plural())
    }

    /// Returns true if an operator's call created a child.
    pub(super) fn creates(&self) -> bool {
        self.change.action() == Action::Added && self.acts_on_child()
    }

    /// Returns true if an operator's call named this child, and not its owner.
    pub(super) fn acts_on_child(&self) -> bool {
        let plural = self.change.plural();
        let verb = match self.change.action() {
            Action::Added => "create",
            // If another call caused the deletion, the garbage collector carried it out.
            Action::Modified | Action::Deleted => "delete",
        };
        let is_it = |current: &CurrentCall| current.call.is(verb, plural);
        job::CHILDREN.contains(&plural) && self.call.is_some_and(is_it)
    }

    /// Returns the time of the oldest state that the operator may act on. `staleness` is the allowed age in
    /// milliseconds.
    pub(super) fn earliest(&self, staleness: u64) -> u64 {
        self.call
            .map_or(self.now, |current| current.sent)
            .saturating_sub(staleness)
    }

    /// Returns true if the job's status was edited by a user since the oldest state that the operator may act on.
    pub(super) fn status_was_edited(&self, timeline: &JobTimeline) -> bool {
        timeline
            .status_edited
            .is_some_and(|at| at >= self.earliest(self.staleness.of_others))
    }

    /// Returns the job that controls the object.
    pub(super) fn owner(&self) -> Option<&JobTimeline> {
        self.timeline.jobs.get(job::controller(self.before())?)
    }

    /// Returns the job that controls the object, or that controlled it at `since` or later.
    pub(super) fn former_owner(&self, since: u64) -> Option<&JobTimeline> {
        let child = self.timeline.children.get(self.before().meta("uid")?.as_str()?)?;
        let recently = child.orphaned.is_none_or(|at| at >= since);
        self.timeline.jobs.get(child.owner.as_ref().filter(|_| recently)?)
    }

    pub(super) fn violation(&self, what: &str) -> Option<String> {
        Some(format!("{} {}: {what}", self.change.kind(), self.change.name()))
    }
}
