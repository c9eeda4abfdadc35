//! `kubectl training explain`: the rules of a job of the cluster.

use std::process::ExitCode;

use training_job_review::explain::explain;
use training_job_review::settings::SettingsArgs;
use training_job_review::{Failure, Kinds};

use crate::help;
use crate::job::ViewArgs;

const HELP: &str = "\
The answers are computed: the operator's planner runs on the job with simulated failures. Settings of the cluster's
operator that change them are flags.

Examples:
  {program} explain train
  {program} explain train --gang-scheduler-name volcano

Rights (in the namespace):
  get  jobs

Exit codes:
  0  the job is explained
  2  no such job, an invalid job, or bad usage";

/// Describe how a job starts, succeeds, and reacts to each kind of failure.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub(crate) struct Args {
    #[command(flatten)]
    view: ViewArgs,
    #[command(flatten)]
    settings: SettingsArgs,
}

pub(crate) fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let settings = arguments.settings.read()?;
    let (stored, job) = arguments.view.job.with_job(kinds, async |_, stored| {
        let job = stored.checked()?;
        Ok((stored, job))
    })?;
    let explanation = explain(&job, &settings)?;
    arguments
        .view
        .print(&stored, &explanation, |_| explanation.text())
}
