//! The commands that need no operator. Those that can read a cluster are in this folder; without the feature `views`, they
//! read files alone.

#[cfg(feature = "views")]
mod diff;
#[cfg(feature = "views")]
mod explain;

use std::process::ExitCode;

use clap::Subcommand;
use training_job_review::{Failure, Files};
#[cfg(not(feature = "views"))]
use training_job_review::{diff, explain};

use crate::doctor;
use crate::kinds::Kinds;

/// The commands that check and preview jobs, for `#[command(flatten)]` in a program's command line.
#[derive(Debug, Subcommand)]
pub enum Review {
    /// The commands that never read a cluster.
    #[command(flatten)]
    Files(Files),
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
            Self::Files(files) => files.run(kinds),
            Self::Diff(arguments) => diff::run(arguments, kinds),
            Self::Doctor(arguments) => doctor::run(arguments, kinds),
            Self::Explain(arguments) => explain::run(arguments, kinds),
        }
    }
}

/// Returns the help of a command that can read a cluster as well, with an example and an explanation of that.
#[cfg(feature = "views")]
fn with_cluster(text: &str, example: &str, explanation: &str) -> String {
    let (text, exit_codes) = text.split_once("\n\nExit codes:").unwrap_or((text, ""));
    format!("{text}\n  {{program}} {example}\n\n{explanation}\n\nExit codes:{exit_codes}")
}
