//! A valid job, what the cluster holds of it, and the time → a plan. Pure.
//!
//! A [`Plan`] says everything that is to be done now, and when to look again. For an active job it is made in three
//! steps: a survey gathers where each replica stands (`survey.rs`), a verdict says what that means for the job
//! (`verdict.rs`: failed, succeeded, out of time, over the backoff limit, restarts, goes on), and the verdict is carried
//! out on the next status and the children (`active.rs`, `end.rs`, `children.rs`,
//! `objects.rs`).
//!
//! What must not be lost is written first. A plan whose status ends the job, enters a restart,
//! suspends or resumes does nothing else: the next plan, made from the status that was stored, does
//! the deleting and creating. So a crash between any two calls leaves a state that the next plan
//! continues from.

mod active;
mod children;
mod conditions;
mod draft;
mod end;
mod failure;
mod gang;
mod invalid;
mod notices;
mod objects;
pub mod observed;
mod policy;
mod progress;
mod recovery;
mod survey;
mod suspension;
mod types;
mod verdict;

use jiff::Timestamp;

use crate::job::TrainingJob;
use crate::validate::ValidJob;

pub use invalid::invalid;
pub use types::{ChildKind, Deletion, ObjectPatch, Plan, PlannedEvent, PlannedPod, Requeue, StatusChange};

use draft::Draft;
use observed::Observed;

/// Plans for a job.
///
/// `now` may be any time; a clock that jumps makes limits early or late, and does no other harm.
pub fn plan<J: TrainingJob>(job: &ValidJob<'_, J>, observed: &Observed, now: Timestamp) -> Plan {
    // The garbage collector takes the children of one that is being deleted.
    if job.job.meta().deletion_timestamp.is_some() || job.policy.is_for_another_controller {
        return Plan::default();
    }
    let observed = objects::set_apart(job, observed);
    let mut draft = Draft::new(job, &observed, now);
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
