//! The kinds of job of this project for programs that review manifests without a cluster, and `convert`.
//!
//! The program `training-review` has these commands alone. `training-operator` has them beside its own.

pub mod convert;
#[cfg(feature = "__fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod kinds;

pub use kinds::{FORMER_GROUPS, kinds};
