//! The only asynchronous part: watch, plan, apply, report.
//!
//! ```text
//! watch events ─► jobs, children ─► observe ─► validate ─► plan ─► apply ─► report
//!                 (synchronous)     (read)     (pure)      (pure)  (calls)  (calls)
//! ```
//!
//! [`Operator`] runs any number of kinds of jobs from one process, with one watch for all their pods
//! and one for all their services. What it relies on to be correct with a cache that lags, and at
//! any point where it may be killed:
//!
//! * A child's name follows from its job, role and index, so creating it twice gives one object:
//!   `AlreadyExists` of an own object is success.
//! * Every delete names the UID it means; every status write names the version it was made from.
//! * Answers to own writes enter the cache at once, so the next plan knows of them; one that the watch
//!   is already past is left out, so that nothing lives on that is gone.
//! * Nothing is planned before the first lists of all kinds are complete, nor for a job of which it is not known
//!   what the server has: whether a status was written, or what a refusal is due to, is asked first.
//! * Every call has a time-out; every retry is per job, exponential and bounded.

mod apply;
mod child;
mod children;
#[cfg(test)]
mod children_tests;
mod clock;
mod doubt;
mod events;
#[cfg(feature = "__fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod jobs;
#[cfg(test)]
mod jobs_tests;
mod lists;
mod memory;
mod metrics;
mod operator;
mod pace;
mod queue;
mod reconcile;
#[cfg(test)]
mod reconcile_tests;
mod report;
mod seen;
mod shared;
mod stored;
#[cfg(test)]
mod toy;

pub use clock::{Clock, SystemClock};
pub use metrics::Metrics;
pub use operator::{Operator, Options};
