//! A plan in the making.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::labels;
use crate::api::{ConditionStatus, ConditionType, JobCondition, JobStatus, ReplicaStatus};
use crate::job::{Milestone, ReplicaState, Replicas, TrainingJob};
use crate::render;
use crate::validate::ValidJob;

use super::conditions;
use super::observed::Observed;
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
        Self {
            job,
            observed,
            now,
            exact_now,
            status: old.clone(),
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
        let reason = format!("{}{reason}", J::kind(&()));
        let message = self.job.job.message(milestone);
        conditions::set(&mut self.status, type_, value, &reason, message, self.now)
    }

    pub(super) fn event(&mut self, warning: bool, reason: &str, message: String) {
        let reason = format!("{}{reason}", J::kind(&()));
        self.plan.events.push(PlannedEvent {
            warning,
            reason,
            message,
        });
    }

    /// Marks the job as created.
    pub(super) fn mark_created(&mut self) {
        if self.status.condition(ConditionType::Created).is_none() {
            self.set(
                ConditionType::Created,
                ConditionStatus::True,
                "Created",
                &Milestone::Created,
            );
        }
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
        self.stored_first = is_active(&self.status) && !is_active(&self.old);
    }

    /// Whether nothing may be made yet, since the queue does not know that the job is active.
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

    /// Whether the job has had its turn: it was started, or has pods of an operator before this one.
    pub(super) fn has_begun(&self) -> bool {
        self.status.start_time.is_some() || !self.observed.pods.is_empty()
    }

    /// Marks an active job as created and started.
    pub(super) fn begin(&mut self) {
        self.mark_created();
        if self.status.start_time.is_none() {
            self.start_clock();
        }
    }

    pub(super) fn start_clock(&mut self) {
        self.status.start_time = Some(Time(self.now));
    }
}
