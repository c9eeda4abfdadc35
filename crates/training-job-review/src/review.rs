//! The commands that need no cluster.

use std::process::ExitCode;

use clap::Subcommand;

use crate::exit::Failure;
use crate::kinds::Kinds;
use crate::{diff, explain, new_job, render, snapshot, validate};

/// The commands that check and preview jobs without a cluster, for `#[command(flatten)]` in a program's command line.
#[derive(Debug, Subcommand)]
pub enum Review {
    /// The commands that never read a cluster.
    #[command(flatten)]
    Files(Files),
    /// Show how the objects of jobs change.
    Diff(diff::Args),
    /// Describe how a job starts, succeeds, and reacts to each kind of failure.
    Explain(explain::Args),
}

/// The commands that read and write only files, also in a program that reads clusters.
#[derive(Debug, Subcommand)]
pub enum Files {
    /// Print the manifest of a first job.
    New(new_job::Args),
    /// Print the pods, services and other objects of jobs.
    Render(render::Args),
    /// Check jobs for errors and likely mistakes.
    Validate(validate::Args),
    /// Write the objects of jobs to files for review.
    Snapshot(snapshot::Args),
}

impl Review {
    /// Runs the command.
    ///
    /// # Errors
    /// Usually bad input: exit code 2.
    pub fn run(&self, kinds: &Kinds) -> Result<ExitCode, Failure> {
        match self {
            Self::Files(files) => files.run(kinds),
            Self::Diff(arguments) => diff::run(arguments, kinds),
            Self::Explain(arguments) => explain::run(arguments, kinds),
        }
    }
}

impl Files {
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
        }
    }
}
