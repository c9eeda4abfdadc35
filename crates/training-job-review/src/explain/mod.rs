//! `explain`: describes the rules of a job.

mod dry_run;
mod explanation;
mod success;
mod timeline;

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use training_job::Settings;

use crate::check::{Job, valid_jobs};
use crate::exit::{self, Failure};
use crate::explain::dry_run::timeline;
use crate::help::help;
use crate::kinds::Kinds;
use crate::settings::SettingsArgs;
use crate::write;

pub use explanation::{Explanation, Rule};

/// The help of the command. Its last parts are the examples and the exit codes.
pub const HELP: &str = "\
The answers are computed: the operator's planner runs on the job with simulated failures.

A FILE is a file, a directory, - for standard input, or a file or directory of a git revision (REV:path, from the
repository's root).

Examples:
  {program} explain job.yaml
  {program} explain job.yaml --gang-scheduler-name volcano
  {program} explain main:jobs --output markdown

Exit codes:
  0  all jobs are explained
  2  bad YAML, an invalid job, or bad usage";

/// Describe how a job starts, succeeds, and reacts to each kind of failure.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub struct Args {
    /// Files, directories (with all *.yaml, *.yml and *.json files below them), or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    options: Options,
}

/// The flags that do not depend on where the jobs come from.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The format of the output.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
    #[command(flatten)]
    settings: SettingsArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Sentences and a table.
    Text,
    /// One JSON object with a list of jobs, for programs.
    Json,
    /// Tables for a comment on a pull request.
    Markdown,
}

/// Prints the rules of the jobs of files.
///
/// # Errors
/// The settings cannot be read, or a job is invalid with them.
pub fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    match valid_jobs(kinds, &arguments.files) {
        Some(jobs) => print(&jobs, &arguments.options),
        None => Ok(exit::bad_input()),
    }
}

/// Prints the rules of jobs.
///
/// # Errors
/// The settings cannot be read, or a job is invalid with them.
pub fn print(jobs: &[Job], options: &Options) -> Result<ExitCode, Failure> {
    let settings = options.settings.read()?;
    let explained = jobs.iter().map(|job| explain(job, &settings));
    let explained = explained.collect::<Result<Vec<_>, Failure>>()?;
    let join = |text: fn(&Explanation) -> String| explained.iter().map(text).collect::<Vec<_>>().join("\n");
    match options.output {
        Format::Text => write::print(&join(Explanation::text))?,
        Format::Markdown => write::print(&join(Explanation::markdown))?,
        Format::Json => write::print_json(&json!({"jobs": explained}))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the rules of a job.
///
/// # Errors
/// The job is invalid with these settings.
pub fn explain(job: &Job, settings: &Settings) -> Result<Explanation, Failure> {
    let timeline = timeline(&job.kind, &job.object, &job.version, settings);
    let timeline = timeline.map_err(|errors| Failure::new(&job.origin, errors))?;
    let mut explanation = Explanation::new(&job.object, &timeline);
    explanation.add_progress(&job.status["progress"]);
    Ok(explanation)
}
