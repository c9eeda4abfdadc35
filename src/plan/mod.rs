//! A valid job, what the cluster holds of it, and the time → a plan. Pure.
//!
//! A [`Plan`] says everything that is to be done now, and when to look again. For an active job it is made in three
//! steps: a survey gathers where each replica stands (`survey.rs`), a verdict says what that means for the job
//! (`verdict.rs`: failed, succeeded, out of time, over the backoff limit, restarts, goes on), and the verdict is carried
//! out on the next status and the children (`active.rs`, `end.rs`, `children.rs`).
//!
//! What must not be lost is written first. A plan whose status ends the job, enters a restart,
//! suspends or resumes does nothing else: the next plan, made from the status that was stored, does
//! the deleting and creating. So a crash between any two calls leaves a state that the next plan
//! continues from.

mod active;
mod children;
mod conditions;
mod end;
mod failure;
mod invalid;
mod notices;
pub mod observed;
mod progress;
mod recovery;
mod survey;
mod suspension;
mod verdict;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{ConditionStatus, ConditionType, JobCondition, JobStatus, ReplicaStatus};
use crate::job::{Milestone, TrainingJob};
use crate::job::{ReplicaState, Replicas};
use crate::plan::observed::Observed;
use crate::validate::ValidJob;

pub use invalid::invalid;

/// What is to be done for a job now.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Services to create, before the pods.
    pub create_services: Vec<Service>,
    /// Pods to create, in order.
    pub create_pods: Vec<Pod>,
    /// Objects to delete.
    pub delete: Vec<Deletion>,
    /// Whether the job itself is to be deleted, its time to live being over.
    pub delete_job: bool,
    /// The next status, if it differs from the stored one.
    pub status: Option<StatusChange>,
    /// Events to send once the status is stored.
    pub events: Vec<PlannedEvent>,
    /// Events that are due as long as what they tell of holds: each reason is told once, and again only
    /// after none held.
    pub notices: Vec<PlannedEvent>,
    /// When to look again even if nothing happens.
    pub requeue: Option<Requeue>,
    /// Whether the job cannot be run as it is.
    pub refused: bool,
}

/// A status to store.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusChange {
    /// The whole status.
    pub status: JobStatus,
    /// Whether it tells of more than counts, or than that the job is there or part of it begins to run. Those
    /// may wait a little, so that what changes together costs one write.
    pub urgent: bool,
}

/// An object to delete.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deletion {
    /// What it is.
    pub kind: ChildKind,
    /// Its name.
    pub name: String,
    /// Its UID: an object of the same name that came later is not meant.
    pub uid: String,
}

/// A kind of object that jobs own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChildKind {
    /// A pod.
    Pod,
    /// A service.
    Service,
}

/// An event about the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedEvent {
    /// Whether it is of type Warning; else Normal.
    pub warning: bool,
    /// Why, in one word.
    pub reason: String,
    /// The sentence.
    pub message: String,
}

/// A time to look again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requeue {
    /// When.
    pub at: Timestamp,
    /// Why.
    pub why: &'static str,
}

impl Plan {
    /// Whether pods or services are to be created or deleted.
    pub fn changes_children(&self) -> bool {
        !(self.create_services.is_empty() && self.create_pods.is_empty() && self.delete.is_empty())
    }

    /// Whether there is nothing to do now.
    pub fn is_idle(&self) -> bool {
        !self.changes_children() && !self.delete_job && self.status.is_none() && self.events.is_empty()
    }

    /// There is one reason at most: a verdict waits for one thing.
    fn requeue_at(&mut self, at: Timestamp, why: &'static str) {
        self.requeue = Some(Requeue { at, why });
    }
}

/// Plans for a job.
///
/// `now` may be any time; a clock that jumps makes limits early or late, and does no other harm.
pub fn plan<J: TrainingJob>(job: &ValidJob<'_, J>, observed: &Observed, now: Timestamp) -> Plan {
    let mut draft = Draft::new(job, observed, now);
    if job.job.meta().deletion_timestamp.is_some() {
        // The garbage collector takes the children.
        return Plan::default();
    }
    invalid::recover(&mut draft);
    if draft.status.is_finished() {
        end::tidy(&mut draft);
    } else if job.policy.suspend {
        suspension::suspend(&mut draft);
    } else if !suspension::resume(&mut draft) {
        active::plan_active(&mut draft);
    }
    draft.finish()
}

/// A plan in the making.
struct Draft<'a, J> {
    job: &'a ValidJob<'a, J>,
    observed: &'a Observed,
    /// The time in whole seconds: the wire has no others, and a status compared with the stored one
    /// must have the same.
    now: Timestamp,
    /// The time as it is.
    exact_now: Timestamp,
    old: JobStatus,
    status: JobStatus,
    plan: Plan,
}

impl<'a, J: TrainingJob> Draft<'a, J> {
    fn new(job: &'a ValidJob<'a, J>, observed: &'a Observed, now: Timestamp) -> Self {
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
            plan: Plan::default(),
        }
    }

    fn set(
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

    fn event(&mut self, warning: bool, reason: &str, message: String) {
        let reason = format!("{}{reason}", J::kind(&()));
        self.plan.events.push(PlannedEvent {
            warning,
            reason,
            message,
        });
    }

    /// Marks the job as created.
    fn mark_created(&mut self) {
        if self.status.condition(ConditionType::Created).is_none() {
            self.set(
                ConditionType::Created,
                ConditionStatus::True,
                "Created",
                &Milestone::Created,
            );
        }
    }

    fn count(&mut self, states: &Replicas<'_>) {
        let counts = states.roles().iter().map(|role| {
            let count = |state| i32::try_from(role.count(state)).unwrap_or(i32::MAX);
            let status = ReplicaStatus {
                active: count(ReplicaState::Running),
                succeeded: count(ReplicaState::Succeeded),
                failed: count(ReplicaState::Failed),
                selector: None,
            };
            (role.role.name().to_owned(), status)
        });
        self.status.replica_statuses = counts.collect();
    }

    fn finish(mut self) -> Plan {
        if self.status != self.old {
            let news = self.status.with_counts_of(&self.old);
            let urgent = news != self.old && !self.is_partial_start(&news);
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

    /// Marks an active job as created and started.
    fn begin(&mut self) {
        self.mark_created();
        if self.status.start_time.is_none() {
            self.start_clock();
        }
    }

    fn start_clock(&mut self) {
        self.status.start_time = Some(Time(self.now));
    }
}
