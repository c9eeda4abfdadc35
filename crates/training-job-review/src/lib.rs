//! Commands that review the manifests of training jobs: check, render, compare and explain them without a cluster.
//!
//! Modules import in one direction: each command has a module, and the commands share `check`, `settings`, [`report`],
//! [`mod@write`] and [`exit`]. All of these use [`Kinds`].

pub mod check;
pub mod controller_config;
pub mod diff;
pub mod duration;
pub mod exit;
pub mod explain;
pub mod fields;
#[cfg(feature = "__fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod help;
mod kinds;
mod kustomization;
mod line_diff;
pub mod markdown;
pub mod new_job;
pub mod render;
pub mod report;
mod review;
pub mod settings;
pub mod snapshot;
pub mod table;
pub mod validate;
pub mod write;

pub use exit::Failure;
pub use help::help;
pub use kinds::{Kind, Kinds, Unserved};
pub use review::{Files, Review};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
