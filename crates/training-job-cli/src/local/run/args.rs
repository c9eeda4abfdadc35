//! The command line of `local run`.

use std::path::PathBuf;
use std::time::Duration;

use training_job_review::check::assignment::Assignment;
use training_job_review::controller_config::ControllerConfigArgs;
use training_job_review::help;
use training_job_review::new_job::{JobArgs, kind_parser};
use training_job_review::render::ReplicaName;

use super::report::{self, ReportArgs};
use crate::local::processes::ProcessArgs;

const HELP: &str = "\
The operator, an in-memory Kubernetes API and a node agent run in this process. Images are not
pulled: the containers' commands run on this machine. ConfigMaps and Secrets of the files are
created, and their files are mounted. Jobs may be exported from a cluster (kubectl get -o yaml).
Each container gets as many of this machine's GPUs as it requests, and a pod waits until they are
free; --ignore-devices starts pods without them.

Examples:
  {program} local run job.yaml --venv .venv
  {program} local run --kind pytorch --workers 2 -- python3 train.py
  {program} local run job.yaml --workdir ~/src/model --timeout 10m --keep-logs logs
  {program} local run job.yaml -e WANDB_API_KEY --mount data=./data
  {program} local run job.yaml --set spec.runPolicy.backoffLimit=0 --only worker-0
  {program} local run job.yaml --output json > result.json
{report}  {program} local run job.yaml --why

Exit codes:
  0    all jobs Succeeded
  1    a job Failed, or the timeout expired
  2    bad YAML or usage
  130  ended by Ctrl-C; a second Ctrl-C kills at once";

#[derive(Debug, clap::Args)]
#[command(after_help = help(&HELP.replace("{report}", report::EXAMPLE)))]
pub struct Args {
    /// Job manifests: files, directories (with all *.yaml, *.yml and *.json files below them), or - for standard input
    #[arg(value_name = "FILE", required_unless_present = "kind")]
    pub files: Vec<PathBuf>,

    /// Run a command as a job of this kind, without a manifest
    #[arg(long, value_name = "KIND", value_parser = kind_parser(), ignore_case = true)]
    pub(crate) kind: Option<String>,

    #[command(flatten)]
    pub(crate) job: JobArgs,

    /// Print the manifest of the job that --kind makes, to standard error
    #[arg(long, requires = "kind")]
    pub(crate) print_job: bool,

    /// The directory in which the processes start [default: the directory of the first FILE]
    #[arg(long, value_name = "DIR")]
    pub workdir: Option<PathBuf>,

    #[command(flatten)]
    pub processes: ProcessArgs,

    #[command(flatten)]
    pub(crate) controller_config: ControllerConfigArgs,

    /// Set a field of all jobs to a YAML value before they are checked, such as spec.runPolicy.backoffLimit=0; may be
    /// repeated
    #[arg(long, value_name = "PATH=VALUE")]
    pub(crate) set: Vec<Assignment>,

    /// Show only the output of this replica: a role and an index (worker-0), or a pod's name
    #[arg(long, value_name = "REPLICA")]
    pub(crate) only: Option<ReplicaName>,

    /// Print the result to standard output, and everything else to standard error
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<Format>,

    #[command(flatten)]
    pub(crate) report: ReportArgs,

    /// Stop after this time, such as 600 (seconds), 10m or 1h30m, with exit code 1
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub timeout: Option<Duration>,

    /// Show the log of the operator and the node on standard error; RUST_LOG selects other lines
    #[arg(short, long)]
    pub verbose: bool,

    /// Rejected; without it, clap would suggest --path.
    #[arg(long, hide = true)]
    pub(crate) watch: bool,

    /// The command of the job that --kind makes
    #[arg(value_name = "COMMAND", last = true, requires = "kind")]
    pub(crate) command: Vec<String>,
}

/// The format of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// One JSON object: the jobs, each with its condition, timeline and replicas.
    Json,
}

fn time(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string());
    }
    let time = text.parse::<jiff::SignedDuration>().ok();
    let time = time.and_then(|time| Duration::try_from(time).ok());
    time.ok_or_else(|| "must be a number of seconds, or a time such as 10m".to_owned())
}
