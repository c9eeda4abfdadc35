//! The engine: watches, the work queue, and reconciling, which is the only part of the library that sees a client
//! besides `process`.
//!
//! A reconcile is five steps (`reconcile.rs`):
//!
//! | step | file | from | to |
//! |---|---|---|---|
//! | observe | `observe.rs` | the caches below `cache/` | the job, and its [`Observed`](crate::plan::observed::Observed) children |
//! | validate | `cache/stored_job.rs`, [`validate`](crate::validate()) | the raw spec | a [`ValidJob`](crate::ValidJob), or all its field errors |
//! | plan | [`plan`](crate::plan()) | job, children, now | a [`Plan`](crate::Plan) |
//! | apply | `apply.rs` | the plan's creates and deletes | what was done, and what failed |
//! | report | `report.rs` | the plan made again after apply | at most one patch of the status, and events |
//!
//! Then `requeue.rs` decides when the job is reconciled again. What each answer of the API server means is one table in
//! `answers.rs`; how often children are created and statuses written is bounded in `pace.rs`.
//!
//! [`Operator`] runs any number of kinds of jobs from one process, with one watch for all their pods
//! and one for all their services. It is correct with a cache that lags, and at any point where it may be killed, by
//! these invariants:
//!
//! * A child's name follows from its job, role and index, so creating it twice gives one object:
//!   `AlreadyExists` of an own object is success, and one without our labels, which no watch shows, gets them.
//! * Every delete names the UID it means; every status write names the version it was made from.
//! * Answers to own writes enter the cache at once, so the next plan knows of them; an answer that the watch
//!   is already past is left out, so that nothing stays in the cache that is gone.
//! * Nothing is planned before the first lists of all kinds are complete, nor for a job that is uncertain: one of which
//!   the cache may differ from the server is read again first.
//! * Every call has a time-out; every retry is per job, exponential and bounded.

mod answers;
mod apply;
mod cache;
mod calls;
mod clock;
mod context;
mod events;
#[cfg(feature = "__fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod job_state;
mod merge_patch;
mod metrics;
mod observe;
mod operator;
mod pace;
mod queue;
mod reconcile;
mod reconciler;
mod report;
mod requeue;
mod room;
mod steps;
mod watch;

pub use clock::{Clock, SystemClock};
pub use metrics::Metrics;
pub use operator::{Operator, Options};

#[cfg(test)]
mod tests {
    mod reconcile;
    pub(in crate::controller) mod toy;
}
