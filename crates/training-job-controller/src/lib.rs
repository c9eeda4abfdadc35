//! The controller of training jobs: watches, work queue and reconciler. The kinds of job implement
//! [`TrainingJob`](training_job::TrainingJob).
//!
//! Most programs need the feature `process` alone: `process::main` is an operator with flags, logs, health pages,
//! metrics, leader election and signals. An operator inside another program runs until it is dropped:
//!
//! ```no_run
//! # async fn run<ToyJob: training_job::TrainingJob>() -> kube::Result<()> {
//! use training_job_controller::{Operator, Options};
//!
//! let mut config = kube::Config::infer().await.map_err(kube::Error::InferConfig)?;
//! config.default_retry = false; // the operator itself retries, per job
//! let client = kube::Client::try_from(config)?;
//! Operator::new(client, Options::default()).manage::<ToyJob>().run().await;
//! # Ok(()) }
//! ```
//!
//! # The steps of a reconcile
//!
//! A reconcile has five steps (`reconcile.rs`):
//!
//! | step | file | input | output |
//! |---|---|---|---|
//! | observe | `observe.rs` | the caches below `cache/` | the job and its [`Observed`](training_job::plan::observed::Observed) children |
//! | validate | `validate.rs`, [`validate`](training_job::validate()) | the raw spec | a [`ValidJob`](training_job::ValidJob), or all its field errors |
//! | plan | [`plan`](training_job::plan()) | job, children, current time | a [`Plan`](training_job::Plan) |
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
mod finished;
mod freed_capacity;
#[cfg(feature = "__fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod job_state;
mod merge_patch;
mod metrics;
mod missing_permissions;
mod observe;
mod operator;
mod output;
mod queue;
mod quota_queue;
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
pub use finished::{FinishedJob, FinishedJobs};
pub use metrics::{LostStory, Metrics};
pub use operator::{Operator, Options};

#[cfg(feature = "process")]
pub mod process;

#[cfg(test)]
mod tests {
    pub(crate) mod log;
    mod reconcile;
    mod recorder;
    pub(crate) mod server;
    pub(crate) mod toy;
}

#[cfg(all(doctest, feature = "process"))]
#[doc = include_str!("../README.md")]
struct Readme;
