//! A plan in the making.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::labels;
use crate::api::{ConditionStatus, ConditionType, JobCondition, JobStatus, ReplicaStatus};
use crate::job::{GangScheduler, Milestone, ReplicaState, Replicas, TrainingJob};
use crate::render;
use crate::validate::ValidJob;

use super::conditions;
use super::observed::Observed;
use super::recovery;
use super::types::{Plan, PlannedEvent, StatusChange};

/// A plan in the making.
pub(super) struct Draft<'a, J> {
    pub(super) job: &'a ValidJob<'a, J>,
    pub(super) observed: &'a Observed,
    /// The time in whole seconds: the wire has no others, and a status compared with the stored one
    /// must have the same.
    pub(super) now: Timestamp,
    /// The time as it is.
    pub(super) exact_now: Timestamp,
    pub(super) old: JobStatus,
    pub(super) status: JobStatus,
    /// Whether the job waits for its turn in a gang scheduler's queue.
    pub(super) waits: bool,
    /// Whether the status is to be stored before anything is made.
    stored_first: bool,
    pub(super) plan: Plan,
}

impl<'a, J: TrainingJob> Draft<'a, J> {
    pub(super) fn new(job: &'a ValidJob<'a, J>, observed: &'a Observed, now: Timestamp) -> Self {
        let old = job.job.status().cloned().unwrap_or_default();
        let exact_now = now;
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        let mut status = old.clone();
        recovery::believe_times(&mut status, job.job.meta(), now);
        Self {
            job,
            observed,
            now,
            exact_now,
            status,
            old,
            waits: false,
            stored_first: false,
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

    /// Sets a condition that became so at this time.
    fn set_at(
        &mut self,
        at: Timestamp,
        type_: ConditionType,
        value: ConditionStatus,
        reason: &str,
        milestone: &Milestone<'_>,
    ) -> bool {
        let reason = format!("{}{reason}", J::kind(&()));
        let message = self.job.job.message(milestone);
        conditions::set(&mut self.status, type_, value, &reason, message, at)
    }

    pub(super) fn event(&mut self, warning: bool, reason: &str, message: String) {
        let reason = format!("{}{reason}", J::kind(&()));
        self.plan.events.push(PlannedEvent {
            warning,
            reason,
            message,
        });
    }

    /// Marks the job as created, since it was.
    pub(super) fn mark_created(&mut self) {
        if self.status.condition(ConditionType::Created).is_none() {
            let created = self.job.job.meta().creation_timestamp.as_ref();
            let created = created.map_or(self.now, |time| time.0);
            let (type_, holds) = (ConditionType::Created, ConditionStatus::True);
            self.set_at(created, type_, holds, "Created", &Milestone::Created);
        }
    }

    /// Marks the job as running.
    pub(super) fn mark_running(&mut self) {
        let (type_, holds) = (ConditionType::Running, ConditionStatus::True);
        self.set(type_, holds, "Running", &Milestone::Running);
    }

    /// Shows that the job runs if its stored status does not, and returns true if that has to be stored before it may
    /// succeed: clients wait for that condition.
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
        let counts = states.roles().iter().map(|role| {
            let count = |state| i32::try_from(role.count(state)).unwrap_or(i32::MAX);
            let status = ReplicaStatus {
                active: count(ReplicaState::Running),
                succeeded: count(ReplicaState::Succeeded),
                failed: count(ReplicaState::Failed),
                selector: J::FRAMEWORK.scaled_role.map(|_| render::selector(job, role.role)),
            };
            (role.role.name().to_owned(), status)
        });
        self.status.replica_statuses = counts.collect();
    }

    /// Counts the replicas of a job in a queue as active from before their pods are made until they have ended. The queue
    /// takes a job's room away by suspending it, and gives it to another at once if no replica is active; this operator may
    /// learn of it later.
    pub(super) fn claim_room(&mut self) {
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

    /// Whether the status must be stored before anything else happens.
    pub(super) fn is_stored_first(&self) -> bool {
        self.stored_first
    }

    pub(super) fn finish(mut self) -> Plan {
        if self.status != self.old {
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

    /// Whether all that `next`, the next status without new counts, says is that the job was created or begins to run,
    /// and part of it does not run yet. Most jobs run as a whole a moment later, so one write can say all of it.
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

    /// True if the job waits for its turn in a gang scheduler's queue, and never had one before.
    pub(super) fn waits_for_first_turn(&self) -> bool {
        let has_begun = self.status.start_time.is_some() && !self.may_wait_for_first_turn();
        self.waits && !has_begun && self.observed.pods.is_empty()
    }

    /// True if the status is one that a job has which waits for its first turn: no replicas are counted, and it was not
    /// resumed.
    fn may_wait_for_first_turn(&self) -> bool {
        let is_queued = self.job.topology.settings.gang_scheduler == Some(GangScheduler::Volcano);
        let was_suspended = self.status.condition(ConditionType::Suspended).is_some();
        is_queued && !was_suspended && self.status.replica_statuses.is_empty()
    }

    /// Marks a job that waits for its first turn as created. It has a start time, because programs that read the status
    /// take a job without one for lost after a minute.
    pub(super) fn begin_to_wait(&mut self) {
        self.mark_created();
        if self.status.start_time.is_none() {
            self.start_clock();
        }
    }

    /// Marks an active job as created and started. The clock of a job that has waited for its first turn starts anew, so
    /// that its deadline does not run while it waits.
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
