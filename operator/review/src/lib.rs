//! The kinds of job of this project for programs that review manifests without a cluster, `convert`, and the
//! template for authors (`new_kind`).
//!
//! The program `training-review` has these commands alone. `training-operator` has them beside its own.

pub mod convert;
#[cfg(feature = "__fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod kinds;
pub mod new_kind;

pub use kinds::{FORMER_GROUPS, kinds};
