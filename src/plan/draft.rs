//! The plan under construction, with the next status.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::labels;
use crate::api::{ConditionStatus, ConditionType, JobCondition, JobStatus, ReplicaStatus};
use crate::job::{GangScheduler, Milestone, ReplicaState, Replicas};
use crate::render;
use crate::validate::ValidJob;

use super::conditions;
use super::observed::Observed;
use super::reasons;
use super::recovery;
use super::types::{Plan, PlannedEvent, StatusChange};
use super::waiting;

/// A plan under construction, with the next status of the job.
pub(super) struct Draft<'a> {
    pub(super) job: &'a ValidJob<'a>,
    pub(super) observed: &'a Observed,
    /// The current time in whole seconds, as in a stored status. With fractions, each comparison with the stored status
    /// would find a difference.
    pub(super) now: Timestamp,
    /// The current time with fractions of a second.
    pub(super) exact_now: Timestamp,
    pub(super) old: JobStatus,
    pub(super) status: JobStatus,
    /// True if the job waits in the queue of a gang scheduler.
    pub(super) waits: bool,
    /// True if the status must be stored before any other action.
    stored_first: bool,
    /// The number of ready replicas, once they are counted. In the status of a job in a queue, others count as active.
    ready: Option<i32>,
    pub(super) plan: Plan,
}

impl<'a> Draft<'a> {
    pub(super) fn new(job: &'a ValidJob<'a>, observed: &'a Observed, now: Timestamp) -> Self {
        let old = job.job.status().cloned().unwrap_or_default();
        let exact_now = now;
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        let mut status = old.clone();
        conditions::remove(&mut status, ConditionType::HookPanicked);
        recovery::correct_future_times(&mut status, job.job.meta(), now);
        Self {
            job,
            observed,
            now,
            exact_now,
            status,
            old,
            waits: false,
            stored_first: false,
            ready: None,
            plan: Plan::default(),
        }
    }

    pub(super) fn set(
        &mut self,
        type_: ConditionType,
        value: ConditionStatus,
        reason: &str,
        milestone: &Milestone<'_>,
    ) -> bool {
        self.set_at(self.now, type_, value, reason, milestone)
    }

    /// Sets a condition with the transition time `at`.
    fn set_at(
        &mut self,
        at: Timestamp,
        type_: ConditionType,
        value: ConditionStatus,
        reason: &str,
        milestone: &Milestone<'_>,
    ) -> bool {
        let reason = format!("{}{reason}", self.job.job.kind());
        let message = self.job.job.message(milestone);
        conditions::set(&mut self.status, type_, value, &reason, message, at)
    }

    pub(super) fn event(&mut self, warning: bool, reason: &str, message: String) {
        let reason = format!("{}{reason}", self.job.job.kind());
        self.plan.events.push(PlannedEvent {
            warning,
            reason,
            message,
        });
    }

    /// Sets Created, with the creation time of the job.
    pub(super) fn mark_created(&mut self) {
        if self.status.condition(ConditionType::Created).is_none() {
            let created = self.job.job.meta().creation_timestamp.as_ref();
            let created = created.map_or(self.now, |time| time.0);
            let (type_, holds) = (ConditionType::Created, ConditionStatus::True);
            self.set_at(created, type_, holds, reasons::CREATED, &Milestone::Created);
        }
    }

    pub(super) fn mark_running(&mut self) {
        let (type_, holds) = (ConditionType::Running, ConditionStatus::True);
        self.set(type_, holds, reasons::RUNNING, &Milestone::Running);
    }

    /// Sets Running unless the stored status has it. Returns true if it was set: clients wait for Running, so it must be
    /// stored before the job may succeed.
    pub(super) fn must_show_running(&mut self) -> bool {
        let must = !self.old.is(ConditionType::Running);
        if must {
            self.mark_running();
            self.stored_first = true;
        }
        must
    }

    pub(super) fn count(&mut self, states: &Replicas<'_>) {
        let job = self.job;
        let framework = job.job.framework();
        let counts = states.roles().iter().map(|role| {
            let count = |state| i32::try_from(role.count(state)).unwrap_or(i32::MAX);
            let status = ReplicaStatus {
                active: i32::try_from(role.running()).unwrap_or(i32::MAX),
                succeeded: count(ReplicaState::Succeeded),
                failed: count(ReplicaState::Failed),
                ready: framework
                    .waits_for_readiness()
                    .then(|| count(ReplicaState::Ready)),
                selector: framework.scaled_role.map(|_| render::selector(job, role.role)),
            };
            (role.role.name().to_owned(), status)
        });
        self.status.replica_statuses = counts.collect();
        self.ready = Some(self.counted_ready());
    }

    /// Returns the number of ready replicas by the counts of the status.
    fn counted_ready(&self) -> i32 {
        let of_role = |role: &ReplicaStatus| role.ready.unwrap_or(role.active);
        let counts = self.status.replica_statuses.values().map(of_role);
        counts.fold(0, i32::saturating_add)
    }

    /// For a job in a queue, counts all replicas that have not ended as active, also before their pods are created. The
    /// queue reclaims capacity by suspending a job. If no replica is active, it gives the capacity to another job
    /// immediately, before this operator has observed the suspension.
    pub(super) fn count_pending_as_active(&mut self) {
        if labels::queue(self.job.job.meta()).is_none() {
            return;
        }
        for role in &self.job.topology.roles {
            let count = self
                .status
                .replica_statuses
                .entry(role.name().to_owned())
                .or_default();
            let replicas = i32::try_from(role.replicas).unwrap_or(i32::MAX);
            count.active = replicas
                .saturating_sub(count.succeeded)
                .saturating_sub(count.failed)
                .max(0);
        }
        let is_active = |status: &JobStatus| status.replica_statuses.values().any(|role| role.active > 0);
        self.stored_first |= is_active(&self.status) && !is_active(&self.old);
    }

    /// Lets the status be stored before any other action.
    pub(super) fn store_first(&mut self) {
        self.stored_first = true;
    }

    /// Returns true if the status must be stored before any other action.
    pub(super) fn is_stored_first(&self) -> bool {
        self.stored_first
    }

    pub(super) fn finish(mut self) -> Plan {
        let is_active = !self.status.is_finished() && !self.job.policy.suspend;
        let ready = match self.ready.filter(|_| is_active) {
            Some(ready) => ready,
            None => self.counted_ready(),
        };
        let runs = self.ready.unwrap_or(0) > 0;
        let notices = self.plan.notices.iter().filter(|_| !runs);
        let lacks_children = self.observed.pods.is_empty() || self.plan.creates() > 0;
        let reason = waiting::reason(notices, &self.old.waiting_reason, lacks_children);
        let reason = if is_active { reason } else { String::new() };
        self.status.set_waiting(reason, self.now);
        if self.status != self.old {
            self.status.ready = format!("{ready}/{}", self.job.topology.total());
            let news = self.status.with_counts_of(&self.old);
            let urgent =
                self.stored_first || news != self.old && (self.waits || !self.is_partial_start(&news));
            self.plan.status = Some(StatusChange {
                status: self.status,
                urgent,
            });
        }
        self.plan
    }

    /// Returns true if `next`, the next status without new counts, only adds that the job was created or begins to run, and
    /// some replicas have not started. Most jobs run completely a moment later, so that one write is enough for both.
    fn is_partial_start(&self, next: &JobStatus) -> bool {
        let begun = |role: &ReplicaStatus| i64::from(role.active) + i64::from(role.succeeded);
        let begun: i64 = self.status.replica_statuses.values().map(begun).sum();
        if begun >= i64::from(self.job.topology.total()) {
            return false;
        }
        let beginning = [ConditionType::Created, ConditionType::Running];
        let begins = |c: &JobCondition| beginning.iter().any(|type_| c.type_ == type_.as_str());
        if self.old == JobStatus::default() {
            return next.conditions.iter().all(begins);
        }
        let runs = next.is(ConditionType::Running) && !self.old.is(ConditionType::Running);
        runs && JobStatus {
            conditions: self.old.conditions.clone(),
            ..next.clone()
        } == self.old
    }

    /// Returns true if the job waits in the queue of a gang scheduler and has never been admitted.
    pub(super) fn waits_for_first_turn(&self) -> bool {
        let has_begun = self.status.start_time.is_some() && !self.may_wait_for_first_turn();
        self.waits && !has_begun && self.observed.pods.is_empty()
    }

    /// Returns the deadline of the job, if it has one. The time before its first admission does not count.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let seconds = self.job.policy.active_deadline_seconds;
        let seconds = seconds.filter(|_| !self.waits_for_first_turn())?;
        let start = self.status.start_time.as_ref()?.0;
        // A deadline that is not representable never comes.
        start.checked_add(SignedDuration::from_secs(seconds)).ok()
    }

    /// Returns true if the status is that of a job which may never have been admitted: no replicas are counted, and it was
    /// not resumed.
    fn may_wait_for_first_turn(&self) -> bool {
        let is_queued = self.job.topology.settings.gang_scheduler == Some(GangScheduler::Volcano);
        let was_suspended = self.status.condition(ConditionType::Suspended).is_some();
        is_queued && !was_suspended && self.status.replica_statuses.is_empty()
    }

    /// Sets Created for a job that has never been admitted. The job also gets a start time, because programs that read the
    /// status regard a job without one as lost after a minute.
    pub(super) fn begin_to_wait(&mut self) {
        self.mark_created();
        if self.status.start_time.is_none() {
            self.start_clock();
        }
    }

    /// Sets Created and the start time of an active job. The start time of a job that was in a queue until now is reset, so
    /// that the wait does not count against its deadline.
    pub(super) fn begin(&mut self) {
        self.mark_created();
        if self.status.start_time.is_none() || self.may_wait_for_first_turn() {
            self.start_clock();
        }
    }

    pub(super) fn start_clock(&mut self) {
        self.status.start_time = Some(Time(self.now));
    }
}
