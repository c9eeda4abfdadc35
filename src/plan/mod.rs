//! Makes the plan for a valid job from its observed children and the current time. Pure: no input or output.
//!
//! A [`Plan`] lists all actions that are due now, and the time of the next reconcile. The plan of an active job is
//! made in three steps. A survey determines the state of each replica (`survey.rs`). A verdict decides what these
//! states mean for the job (`verdict.rs`: failed, succeeded, out of time, over the backoff limit, restarts, goes on).
//! The verdict is then applied to the next status and the children (`active.rs`, `end.rs`, `children.rs`,
//! `objects.rs`).
//!
//! State that must not be lost is written first. A plan whose status ends the job, enters a restart, suspends or
//! resumes does nothing else. The next plan is made from the stored status, and does the deleting and creating. So a
//! crash between any two calls leaves a state that the next plan continues from.

mod active;
mod children;
mod conditions;
mod draft;
mod end;
mod failure;
mod gang;
mod invalid;
mod layout;
mod notices;
mod objects;
pub mod observed;
mod panicked;
mod pod_end;
mod policy;
mod printable;
mod progress;
pub mod reasons;
mod recovery;
mod relabel;
mod resize;
mod start_failure;
mod survey;
mod suspension;
mod ttl;
mod types;
mod verdict;
mod waiting;

use jiff::Timestamp;

use crate::validate::ValidJob;

pub use invalid::invalid;
pub use panicked::panicked;
pub use printable::printable;
pub use resize::restarts_for_sizes;
pub use types::{
    ChildKind, Dangling, Deletion, ObjectPatch, Plan, PlannedEvent, PlannedPod, Requeue, StatusChange,
};

use draft::Draft;
use observed::Observed;

/// Returns the plan for a job.
///
/// `now` may be any time. If the clock jumps, time limits apply early or late; there is no other consequence.
pub fn plan(job: &ValidJob<'_>, observed: &Observed, now: Timestamp) -> Plan {
    // The garbage collector deletes the children of a job that is being deleted.
    if job.job.meta().deletion_timestamp.is_some() || job.policy.is_for_another_controller {
        return Plan::default();
    }
    if let Some(problem) = layout::change(job, observed) {
        let (status, ttl) = (
            job.job.status().cloned().unwrap_or_default(),
            job.policy.ttl_seconds,
        );
        return invalid(
            &job.job.kind(),
            job.topology.job,
            &status,
            ttl,
            &problem,
            observed,
            now,
        );
    }
    let observed = objects::without_job_objects(job, observed);
    let mut draft = Draft::new(job, &observed, now);
    invalid::recover(&mut draft);
    relabel::find_hidden(&mut draft);
    if draft.status.is_finished() {
        end::plan_finished(&mut draft);
    } else if job.policy.suspend {
        suspension::suspend(&mut draft);
    } else if !suspension::resume(&mut draft) {
        active::plan_active(&mut draft);
    }
    notices::add_stuck(&mut draft);
    draft.finish()
}
