//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

const EXIT_CODES: &str = "\
Exit codes:
  0    all is well
  1    the job failed
  2    bad YAML or usage
  130  ended by Ctrl-C";

/// Runs training jobs on Kubernetes, or shows what they would be.
#[derive(Debug, Parser)]
#[command(name = "training-operator", version, after_help = EXIT_CODES, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print every service and pod that jobs would get.
    Render(Render),
    /// Print the custom resource definitions.
    Crds(Crds),
    /// Run jobs on this machine, without a cluster.
    #[command(subcommand)]
    Local(Local),
}

const RENDER_HELP: &str = "\
The objects come in the order in which the operator makes them, and the same input gives the same
bytes. A job in a file has no UID: the owner references have 00000000-0000-0000-0000-000000000000.
Objects that are no training jobs are passed by with a note. Nothing is printed if any job is wrong.

Examples:
  training-operator render job.yaml
  training-operator render examples/ --output json
  kustomize build overlays/prod | training-operator render -
  diff <(training-operator render old.yaml) <(training-operator render new.yaml)

Exit codes:
  0  all jobs are printed
  2  bad YAML, a job that the operator would refuse, or bad usage";

/// Print every service and pod that jobs would get.
#[derive(Debug, Args)]
#[command(after_help = RENDER_HELP)]
pub(crate) struct Render {
    /// Files, directories (all *.yaml, *.yml and *.json below them) or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// How to print: YAML documents, or one JSON List.
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    pub(crate) output: Format,
}

/// How to print objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// YAML documents.
    Yaml,
    /// One JSON object of kind List.
    Json,
}

const CRDS_HELP: &str = "\
Examples:
  training-operator crds | kubectl apply -f -
  training-operator crds --dir crds

Exit codes:
  0  all is well
  2  the files cannot be written, or bad usage";

/// Print the custom resource definitions.
#[derive(Debug, Args)]
#[command(after_help = CRDS_HELP)]
pub(crate) struct Crds {
    /// Write one file per definition into this directory instead, such as kubeflow.org_mxjobs.yaml.
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
}

/// Without a cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum Local {
    /// Run jobs until they end, each replica as a process.
    Run(LocalRun),
}

const LOCAL_RUN_HELP: &str = "\
The operator, an in-memory Kubernetes API and a node agent run in this one process. Images are not
pulled: the containers' commands run as they are found here.

Examples:
  training-operator local run examples/mxnet/train.yaml --venv .venv
  training-operator local run job.yaml --workdir ~/src/model --timeout 10m --keep-logs logs
  training-operator local run job.yaml --why

Exit codes:
  0    all jobs Succeeded
  1    a job Failed, or the time-out has passed
  2    bad YAML or usage
  130  ended by Ctrl-C; a second Ctrl-C kills at once";

/// Run jobs until they end, each replica as a process.
#[derive(Debug, Args)]
#[command(after_help = LOCAL_RUN_HELP)]
pub(crate) struct LocalRun {
    /// Files, directories (all *.yaml, *.yml and *.json below them) or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The working directory of containers that name none. Default: the current directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) workdir: Option<PathBuf>,
    /// A Python virtual environment whose programs are found first.
    #[arg(long, value_name = "DIR")]
    pub(crate) venv: Option<PathBuf>,
    /// A directory in which programs are looked for before PATH; may be given several times.
    #[arg(long, value_name = "DIR")]
    pub(crate) path: Vec<PathBuf>,
    /// Keep each replica's log in a file in this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) keep_logs: Option<PathBuf>,
    /// End jobs that still run after this long: seconds, or 90s, 10m, 2h.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// How long replicas have to end after SIGTERM, where their pods do not say: seconds, or 90s, 10m.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) grace: Option<Duration>,
    /// Show how the processes' environment differs from the pods', and why.
    #[arg(long)]
    pub(crate) why: bool,
}

/// Seconds, or a whole number with `s`, `m` or `h`.
fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) if text.ends_with('m') => (number, 60),
        Some(number) if text.ends_with('h') => (number, 3600),
        Some(number) => (number, 1),
        None => (text, 1),
    };
    let seconds = number.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| "use whole seconds, or 90s, 10m, 2h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn durations_have_units() {
        for (text, seconds) in [
            ("90", Some(90)),
            ("90s", Some(90)),
            ("10m", Some(600)),
            ("2h", Some(7200)),
            ("", None),
            ("m", None),
            ("-1", None),
            ("1d", None),
        ] {
            assert_eq!(duration(text).ok().map(|d| d.as_secs()), seconds, "{text}");
        }
    }
}
