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
//! Commands that review manifests are in `training-job-review`, and those of `kubectl training` in `training-job-kubectl`.
//! Here are the commands of the program itself: run, install and doctor, local runs, and the reviews that read a cluster.
//! [`Cli`] and [`Review`] list the commands, each command has a module, and all of them use [`Kinds`].

mod cli;
pub mod doctor;
#[cfg(feature = "views")]
mod history;
mod install;
pub mod installation;
mod kinds;
#[cfg(feature = "local")]
mod local;
mod manual;
mod review;
mod run;

pub use cli::Cli;
#[cfg(feature = "views")]
pub use history::History;
pub use install::{Install, InstalledKinds};
pub use kinds::Kinds;
#[cfg(feature = "local")]
pub use local::Local;
#[doc(no_inline)]
pub use local_node::{AdjustEnv, Environment, LocalPod};
pub use manual::Manual;
pub use review::Review;
pub use run::Run;
#[doc(no_inline)]
pub use training_job_client::cluster;
#[cfg(feature = "views")]
pub use training_job_kubectl::Kubectl;
#[doc(no_inline)]
pub use training_job_review::{Failure, Kind, Unserved, check, exit, help, report, write};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
