//! The command line of an operator: it runs, reviews and installs the kinds of job of a program.
//!
//! ```no_run
//! # use std::process::ExitCode;
//! # fn program<FarmJob: training_job::TrainingJob>() -> ExitCode {
//! // In fn main() -> ExitCode
//! training_job_cli::Cli::new("farm-operator").kind::<FarmJob>().main()
//! # }
//! ```
//!
//! A program with commands of its own flattens [`Review`] and [`Install`] into them, has [`Local`] and [`History`] as
//! subcommands, and gives each its [`Kinds`].
//!
//! Modules import in one direction: [`Cli`] and [`Review`] list the commands, each command has a module, and the
//! commands share `check`, `settings`, [`report`], [`mod@write`] and [`cluster`]. All of these use [`Kinds`].

mod call_error;
pub mod check;
mod cli;
pub mod cluster;
mod controller_config;
mod diff;
pub mod doctor;
mod duration;
pub mod exit;
mod explain;
mod fields;
#[cfg(feature = "__fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod help;
mod history;
mod install;
pub mod installation;
mod kinds;
mod kubectl;
mod kustomization;
mod line_diff;
#[cfg(feature = "local")]
mod local;
mod manual;
mod markdown;
mod new_job;
mod plugin;
mod render;
pub mod report;
mod review;
mod run;
mod settings;
mod signals;
mod snapshot;
mod story;
mod table;
mod validate;
pub mod write;

pub use cli::Cli;
pub use exit::Failure;
pub use help::help;
pub use history::History;
pub use install::{Install, InstalledKinds};
pub use kinds::{Kind, Kinds, Unserved};
#[cfg(feature = "local")]
pub use local::Local;
#[doc(no_inline)]
pub use local_node::{AdjustEnv, Environment, LocalPod};
pub use manual::Manual;
pub use plugin::Kubectl;
pub use review::Review;
pub use run::Run;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
