//! The command line of `render`.

use std::path::PathBuf;

use super::selection::ReplicaName;
use crate::help::help;
use crate::settings::SettingsArgs;

const HELP: &str = "\
Objects are printed in the order in which the operator creates them. The same input gives the same
bytes. A job in a file has no UID, so owner references have 00000000-0000-0000-0000-000000000000.
Objects that are not training jobs are skipped with a note. If a job is invalid, nothing is printed.

Examples:
  {program} render job.yaml
  {program} render examples/ --output json
  {program} render job.yaml --replica worker-3 --only env
  {program} render jobs/ --summary
  {program} render job.yaml --gang-scheduler-name volcano
  kustomize build overlays/prod | {program} render -
  diff <({program} render old.yaml) <({program} render new.yaml)

Exit codes:
  0  all jobs are printed
  2  bad YAML, an invalid job, a replica that no job has, or bad usage";

/// Print the pods, services and other objects of jobs.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub struct Args {
    /// Files, directories (with all *.yaml, *.yml and *.json files below them), or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// Print only the objects of one replica: a role and an index (worker-3), a role without index (launcher), or a pod's
    /// name.
    #[arg(long, value_name = "REPLICA")]
    pub(super) replica: Option<ReplicaName>,
    /// Print only a part of the objects.
    #[arg(long, value_enum)]
    pub(super) only: Option<Part>,
    /// Print the replicas, resources, GPUs, ports and images of each role instead.
    #[arg(long, conflicts_with = "only")]
    pub(super) summary: bool,
    /// The output format [default: yaml; for a summary, a table].
    #[arg(short, long, value_enum)]
    pub(super) output: Option<Format>,
    #[command(flatten)]
    pub(super) settings: SettingsArgs,
}

/// A part of a job's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Pods.
    Pods,
    /// Services.
    Services,
    /// The containers' environment in each pod.
    Env,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// YAML documents.
    Yaml,
    /// One JSON object of kind List.
    Json,
}
