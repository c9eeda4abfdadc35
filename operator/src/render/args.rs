//! The command line of `render`.

use std::path::PathBuf;

use crate::settings::SettingsArgs;

use super::selection::ReplicaName;

const HELP: &str = "\
The objects come in the order in which the operator makes them, and the same input gives the same
bytes. A job in a file has no UID: the owner references have 00000000-0000-0000-0000-000000000000.
Objects that are no training jobs are passed by with a note. Nothing is printed if any job is wrong.

Examples:
  training-operator render job.yaml
  training-operator render examples/ --output json
  training-operator render job.yaml --replica worker-3 --only env
  training-operator render jobs/ --summary
  training-operator render job.yaml --gang-scheduler-name volcano
  training-operator render mpi.yaml --mpi-remote-shell-image example.com/training-operator:1
  kustomize build overlays/prod | training-operator render -
  diff <(training-operator render old.yaml) <(training-operator render new.yaml)

Exit codes:
  0  all jobs are printed
  2  bad YAML, a job that the operator would refuse, a replica that no job has, or bad usage";

/// Print every object, service and pod that jobs would get.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Files, directories (all *.yaml, *.yml and *.json below them) or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print only this replica's objects, such as worker-3, or launcher of an MPIJob; a pod's name does as well.
    #[arg(long, value_name = "REPLICA")]
    pub(crate) replica: Option<ReplicaName>,
    /// Print only a part: pods, services, or the pods' environment.
    #[arg(long, value_enum)]
    pub(crate) only: Option<Part>,
    /// Print how much each role asks for instead: replicas, resources, GPUs, ports, images.
    #[arg(long, conflicts_with = "only")]
    pub(crate) summary: bool,
    /// How to print: YAML documents (the default), or one JSON List; a summary is a table by default.
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<Format>,
    /// The operator's settings.
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}

/// A part of what a job gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Pods.
    Pods,
    /// Services.
    Services,
    /// Of each pod, the containers' environment.
    Env,
}

/// How to print objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// YAML documents.
    Yaml,
    /// One JSON object of kind List.
    Json,
}
