//! `explain`: describes the rules of a job.

pub(crate) mod dry_run;
mod explanation;
mod live;
mod plugin;
mod success;
pub(crate) mod timeline;

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use training_job::Settings;

use crate::check::{Job, valid_jobs};
use crate::cluster::ClusterArgs;
use crate::exit::{self, Failure};
use crate::explain::dry_run::timeline;
use crate::help::help;
use crate::kinds::Kinds;
use crate::settings::SettingsArgs;
use crate::write;

pub(crate) use explanation::{Explanation, Rule};
pub(crate) use plugin::{PluginArgs, run_in_plugin};

const HELP: &str = "\
The answers are computed: the operator's planner runs on the job with simulated failures.

A FILE is a file, a directory, - for standard input, or a file or directory of a git revision (REV:path, from the
repository's root). With --cluster, it is a job of the cluster: its name, or a kind or its plural, and the name.

Examples:
  {program} explain job.yaml
  {program} explain job.yaml --gang-scheduler-name volcano
  {program} explain main:jobs --output markdown
  {program} explain --cluster mxjob/train --namespace ml

Exit codes:
  0  all jobs are explained
  2  bad YAML, an invalid job, a job that the cluster lacks, or bad usage";

/// Describe how a job starts, succeeds, and reacts to each kind of failure.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub struct Args {
    /// Files, directories (with all *.yaml, *.yml and *.json files below them), or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Explain jobs of the cluster, named NAME or KIND/NAME.
    #[arg(long)]
    cluster: bool,
    /// The namespace of the cluster's jobs [default: the namespace of the context].
    #[arg(short, long, value_name = "NAME", requires = "cluster")]
    namespace: Option<String>,
    #[command(flatten)]
    connection: ClusterArgs,
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

pub(crate) fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let settings = arguments.settings.read()?;
    let jobs = match arguments.cluster {
        true => Some(live::jobs(arguments, kinds)?),
        false => valid_jobs(kinds, &arguments.files),
    };
    let Some(jobs) = jobs else {
        return Ok(exit::bad_input());
    };
    let explained = jobs.iter().map(|job| explain(job, &settings));
    let explained = explained.collect::<Result<Vec<_>, Failure>>()?;
    let join = |text: fn(&Explanation) -> String| explained.iter().map(text).collect::<Vec<_>>().join("\n");
    match arguments.output {
        Format::Text => write::print(&join(Explanation::text))?,
        Format::Markdown => write::print(&join(Explanation::markdown))?,
        Format::Json => write::print_json(&json!({"jobs": explained}))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the rules of a job.
pub(crate) fn explain(job: &Job, settings: &Settings) -> Result<Explanation, Failure> {
    let timeline = timeline(&job.kind, &job.object, &job.version, settings);
    let timeline = timeline.map_err(|errors| Failure::new(&job.origin, errors))?;
    Ok(Explanation::new(&job.object, &timeline))
}
