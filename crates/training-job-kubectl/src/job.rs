//! The arguments of verbs that act on one job.

use std::process::ExitCode;

use serde::Serialize;
use training_job_review::{Failure, Kinds, write};

use crate::connection::{Connection, ConnectionArgs, connect};
use crate::observe::{ObservedJob, Parts, find, observe};
use crate::output::{Output, print_value};
use crate::stored::StoredJob;

/// The job of a verb, and its cluster.
#[derive(Debug, clap::Args)]
pub(crate) struct JobArgs {
    /// The job, as NAME or KIND/NAME.
    #[arg(value_name = "JOB")]
    pub(super) job: String,
    #[command(flatten)]
    pub(super) connection: ConnectionArgs,
}

impl JobArgs {
    /// Runs calls with the job that the argument names.
    ///
    /// # Errors
    /// The job cannot be read, or a call failed.
    pub(crate) fn with_job<T>(
        &self,
        kinds: &Kinds,
        calls: impl AsyncFnOnce(Connection, StoredJob) -> anyhow::Result<T>,
    ) -> Result<T, Failure> {
        connect(&self.connection, async |connection| {
            let job = find(&connection, kinds, &self.job).await?;
            calls(connection, job).await
        })
    }
}

/// The job of a view, and the format of the view.
#[derive(Debug, clap::Args)]
pub(crate) struct ViewArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// The format of the output.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(super) output: Output,
}

impl ViewArgs {
    /// Reads the job with these parts.
    ///
    /// # Errors
    /// The job or a part cannot be read.
    pub(super) fn observe(&self, kinds: &Kinds, parts: Parts) -> Result<ObservedJob, Failure> {
        self.job.with_job(kinds, async |connection, job| {
            observe(&connection.client, job, parts).await
        })
    }

    /// Prints the view: its value for programs, or its text, which gets true if it is to be wide.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(crate) fn print(
        &self,
        job: &StoredJob,
        value: &impl Serialize,
        text: impl FnOnce(bool) -> String,
    ) -> Result<ExitCode, Failure> {
        match self.output {
            Output::Name => write::print(&format!("{}\n", job.resource_name()))?,
            Output::Json | Output::Yaml => print_value(self.output, value)?,
            Output::Text | Output::Wide => write::print_styled(&text(self.output == Output::Wide))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
