//! Makes the plan for a valid job from its observed children and the current time. Pure: no input or output.
//!
//! A [`Plan`] lists all actions that are due now, and the time of the next reconcile. The plan of an active job is
//! made in three steps. Each returns a value. A survey determines the state of each replica (`survey.rs`). A verdict
//! decides what these states mean for the job (`verdict.rs`, `limits.rs`: failed, succeeded, out of time, over the backoff
//! limit, stalled (`stall.rs`), restarts, goes on). The consequences are the next status (`next_status.rs`) and the actions (`actions.rs`).
//!
//! State that must not be lost is written first. A plan whose status ends the job, enters a restart, suspends or
//! resumes does nothing else. The next plan is made from the stored status, and does the deleting and creating. So a
//! crash between any two calls leaves a state that the next plan continues from.

mod actions;
mod conditions;
mod end;
mod facts;
mod failure;
mod gang;
mod limits;
mod next_status;
mod notices;
mod objects;
pub mod observed;
mod pod_end;
mod policy;
mod printable;
pub mod reasons;
mod recovery;
mod refused;
mod relabel;
mod resize;
mod restarts;
mod stall;
mod start_failure;
mod survey;
mod suspension;
mod types;
mod verdict;
mod waiting;

use jiff::Timestamp;

use crate::api::{ConditionType, JobStatus};
use crate::validate::ValidJob;

pub use printable::printable;
pub use refused::{invalid, panicked};
pub use resize::restarts_for_sizes;
pub use types::{
    ChildKind, Dangling, Deletion, ObjectPatch, OutputWatch, Plan, PlannedEvent, PlannedPod, Requeue,
    StatusChange, WatchedPod,
};

use actions::actions;
use facts::Facts;
use next_status::NextStatus;
use observed::Observed;
use stall::Output;
use survey::survey;
use verdict::judge;

/// Returns the plan for a job.
///
/// `now` may be any time. If the clock jumps, time limits apply early or late; there is no other consequence.
pub fn plan(job: &ValidJob<'_>, observed: &Observed, now: Timestamp) -> Plan {
    // The garbage collector deletes the children of a job that is being deleted.
    if job.job.meta().deletion_timestamp.is_some() || job.policy.is_for_another_controller {
        return Plan::default();
    }
    let none = JobStatus::default();
    let stored = job.job.status().unwrap_or(&none);
    if let Some(problem) = refused::layout_change(job, observed) {
        let (kind, ttl) = (job.job.kind(), job.policy.ttl_seconds);
        return invalid(&kind, job.topology.job, stored, ttl, &problem, observed, now);
    }
    let observed = objects::without_job_objects(job, observed);
    let facts = Facts::new(job, &observed, stored, now);
    let status = facts.corrected_status();
    let hidden = relabel::hidden(&facts, &status);
    let (next, actions) = if status.is_finished() {
        end::finished(&facts, status)
    } else if job.policy.suspend {
        suspension::suspended(&facts, status)
    } else if status.is(ConditionType::Suspended) {
        (suspension::resumed(&facts, status), Plan::default())
    } else {
        let waits = gang::waits(&facts, &status);
        let survey = survey(&facts, &status, waits);
        let output = Output::of(&facts, &survey);
        let verdict = judge(&facts, &status, &survey, output.as_ref());
        let next = NextStatus::of_active(&facts, status, &survey, &verdict, output.as_ref());
        let actions = actions(&facts, &survey, &verdict, &next);
        (
            next,
            actions.and(output.map(|output| output.actions()).unwrap_or_default()),
        )
    };
    next.with(hidden.and(actions).and(notices::stuck(&facts)))
}
