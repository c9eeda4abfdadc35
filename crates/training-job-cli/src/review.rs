//! The commands that need no operator. Those that can read a cluster are in this folder.

mod diff;
mod explain;

use std::process::ExitCode;

use clap::Subcommand;
use training_job_review::{Failure, new_job, render, snapshot, validate};

use crate::doctor;
use crate::kinds::Kinds;

/// The commands that check and preview jobs, for `#[command(flatten)]` in a program's command line.
#[derive(Debug, Subcommand)]
pub enum Review {
    /// Print the manifest of a first job.
    New(new_job::Args),
    /// Print the pods, services and other objects of jobs.
    Render(render::Args),
    /// Check jobs for errors and likely mistakes.
    Validate(validate::Args),
    /// Write the objects of jobs to files for review.
    Snapshot(snapshot::Args),
    /// Show how the objects of jobs change.
    Diff(diff::Args),
    /// Check a cluster for problems with its operators, definitions, permissions and jobs.
    Doctor(doctor::Args),
    /// Describe how a job starts, succeeds, and reacts to each kind of failure.
    Explain(explain::Args),
}

impl Review {
    /// Runs the command.
    ///
    /// # Errors
    /// Usually bad input: exit code 2.
    pub fn run(&self, kinds: &Kinds) -> Result<ExitCode, Failure> {
        match self {
            Self::New(arguments) => new_job::run(arguments, kinds),
            Self::Render(arguments) => render::run(arguments, kinds),
            Self::Validate(arguments) => validate::run(arguments, kinds),
            Self::Snapshot(arguments) => snapshot::run(arguments, kinds),
            Self::Diff(arguments) => diff::run(arguments, kinds),
            Self::Doctor(arguments) => doctor::run(arguments, kinds),
            Self::Explain(arguments) => explain::run(arguments, kinds),
        }
    }
}

/// Returns the help of a command that can read a cluster as well, with an example and an explanation of that.
fn with_cluster(text: &str, example: &str, explanation: &str) -> String {
    let (text, exit_codes) = text.split_once("\n\nExit codes:").unwrap_or((text, ""));
    format!("{text}\n  {{program}} {example}\n\n{explanation}\n\nExit codes:{exit_codes}")
}
