//! The controller: watches, work queue and reconciler. Apart from `process`, no other part of the library uses a
//! client.
//!
//! A reconcile has five steps (`reconcile.rs`):
//!
//! | step | file | input | output |
//! |---|---|---|---|
//! | observe | `observe.rs` | the caches below `cache/` | the job and its [`Observed`](crate::plan::observed::Observed) children |
//! | validate | `validate.rs`, [`validate`](crate::validate()) | the raw spec | a [`ValidJob`](crate::ValidJob), or all its field errors |
//! | plan | [`plan`](crate::plan()) | job, children, current time | a [`Plan`](crate::Plan) |
//! | apply | `apply.rs` | the creates and deletes of the plan | completed and failed actions |
//! | report | `report.rs` | the plan, computed again after apply | at most one patch of the status, and events |
//!
//! Then `requeue.rs` decides when the job is reconciled again. The table in `answers.rs` defines how each response of
//! the API server is handled. `rate_limit.rs` limits how often children are created and statuses are written.
//!
//! [`Operator`] runs any number of job kinds in one process. All kinds share one watch for pods and one for services.
//! The operator is correct with a stale cache, and it can be killed at any point, because of these invariants:
//!
//! * A child's name is determined by its job, role and index, so creating it twice gives one object. `AlreadyExists`
//!   for an object of this job is a success. If that object lacks our labels, no watch shows it, and it gets the
//!   labels.
//! * Every delete names the UID of its object. Every status write names the version that it was computed from.
//! * Responses to our own writes enter the cache immediately, so the next plan includes them. A response older than
//!   the state of the watch is dropped, so that no deleted object stays in the cache.
//! * No job is planned before the first lists of all kinds are complete. A job is uncertain if its cached copy may
//!   differ from the server; it is read again before it is planned.
//! * Every call has a timeout. Every retry is per job, with bounded exponential backoff.

mod answers;
mod apply;
mod cache;
mod calls;
mod clock;
mod context;
mod event_series;
mod events;
mod freed_capacity;
#[cfg(feature = "__fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod job_state;
mod merge_patch;
mod metrics;
mod observe;
mod operator;
mod queue;
mod rate_limit;
mod reconcile;
mod reconciler;
mod report;
mod requeue;
mod steps;
mod ttl;
mod validate;
mod watch;

pub use clock::{Clock, SystemClock};
pub use metrics::Metrics;
pub use operator::{Operator, Options};

#[cfg(test)]
mod tests {
    mod reconcile;
    pub(in crate::controller) mod toy;
}
