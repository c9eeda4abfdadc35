//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::render::ReplicaName;
use crate::{local_node, local_run};

const HELP: &str = "\
Examples:
  training-operator validate jobs/
  training-operator render job.yaml --replica worker-0
  training-operator diff origin/main:jobs jobs
  training-operator local run job.yaml
  training-operator local node --kubeconfig ~/.kube/config --venv .venv/mxnet
  training-operator run --leader-elect

Exit codes:
  0    all is well
  1    the job failed; what is checked has errors, is stale, or differs
  2    bad YAML or usage
  130  ended by Ctrl-C";

/// Runs training jobs on Kubernetes, or shows what they would be.
#[derive(Debug, Parser)]
#[command(name = "training-operator", version, after_help = HELP, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the operator on a cluster.
    Run(Box<Run>),
    /// Print every service and pod that jobs would get.
    Render(Render),
    /// Tell what is wrong with jobs, and what is surely not meant.
    Validate(Validate),
    /// Write what jobs get to files that people can review.
    Snapshot(Snapshot),
    /// Show what changes in the pods and services that jobs get.
    Diff(Diff),
    /// Tell a job's life in plain words: start, success, and what follows from each failure.
    Explain(Explain),
    /// Print the custom resource definitions.
    Crds(Crds),
    /// Print what a shell needs to complete commands.
    Completions(Completions),
    /// Print the manual page.
    Man(Man),
    /// Run pods as processes of this machine: jobs without a cluster, or a cluster's pods.
    #[command(subcommand)]
    Local(Local),
}

const RUN_HELP: &str = "\
The cluster is that of --kubeconfig, else of $KUBECONFIG or ~/.kube/config, else the one in which
this process runs as a pod. Logs go to standard error. Each flag can also be given by the environment
variable that stands behind it.

Examples:
  training-operator run
  training-operator run --kubeconfig ~/.kube/config --namespace team-a --zap-encoder json
  training-operator run --leader-elect --enable-scheme MXJob --default-restart-scope Replica

Exit codes:
  0    ended by SIGTERM or SIGINT; what was under way is finished, the lease given back
  1    the cluster's address, a port or a client could not be had
  2    bad usage
  130  or 143: a second signal ended it at once";

/// Run the operator on a cluster.
#[derive(Debug, Args)]
#[command(after_help = RUN_HELP)]
pub(crate) struct Run {
    /// How it runs.
    #[command(flatten)]
    pub(crate) flags: training_job::process::Flags,
    /// Flags of the Go operator that have no meaning here.
    #[command(flatten)]
    pub(crate) ignored: crate::run::Ignored,
}

const RENDER_HELP: &str = "\
The objects come in the order in which the operator makes them, and the same input gives the same
bytes. A job in a file has no UID: the owner references have 00000000-0000-0000-0000-000000000000.
Objects that are no training jobs are passed by with a note. Nothing is printed if any job is wrong.

Examples:
  training-operator render job.yaml
  training-operator render examples/ --output json
  training-operator render job.yaml --replica worker-3 --only env
  training-operator render jobs/ --summary
  kustomize build overlays/prod | training-operator render -
  diff <(training-operator render old.yaml) <(training-operator render new.yaml)

Exit codes:
  0  all jobs are printed
  2  bad YAML, a job that the operator would refuse, a replica that no job has, or bad usage";

/// Print every service and pod that jobs would get.
#[derive(Debug, Args)]
#[command(after_help = RENDER_HELP)]
pub(crate) struct Render {
    /// Files, directories (all *.yaml, *.yml and *.json below them) or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print only this replica's objects, such as worker-3.
    #[arg(long, value_name = "ROLE-INDEX")]
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
}

/// A part of what a job gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Pods.
    Pods,
    /// Services.
    Services,
    /// Of each pod, the containers' environment.
    Env,
}

/// How to print objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// YAML documents.
    Yaml,
    /// One JSON object of kind List.
    Json,
}

const VALIDATE_HELP: &str = "\
The checks are those of the operator and of the custom resource definition. A warning is about a job
that can be run and will surely not do what its author wants.

Examples:
  training-operator validate jobs/
  kustomize build overlays/prod | training-operator validate -
  training-operator validate jobs/ --output sarif > validate.sarif

Exit codes:
  0  no errors; there may be warnings
  1  errors, bad YAML among them
  2  a file that cannot be read, or bad usage";

/// Tell what is wrong with jobs, and what is surely not meant.
#[derive(Debug, Args)]
#[command(after_help = VALIDATE_HELP)]
pub(crate) struct Validate {
    /// Files, directories (all *.yaml, *.yml and *.json below them) or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// How to report.
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) output: ReportFormat,
}

/// How to report findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// One line each: file:line:column: field: problem; remedy.
    Text,
    /// One JSON object.
    Json,
    /// SARIF 2.1.0, which code hosts show beside the lines.
    Sarif,
}

const SNAPSHOT_HELP: &str = "\
Each job gets one file: the job as a comment, then what it gets. Files that this command made and that
belong to no job any more are deleted, so name all jobs of a directory in one call.

Examples:
  training-operator snapshot jobs/ --dir snapshots
  training-operator snapshot jobs/ --dir snapshots --check

Exit codes:
  0  the files are written; with --check, they are as they would be written
  1  with --check: a file is stale, missing or belongs to no job
  2  bad YAML, a job that the operator would refuse, a file that is in the way, or bad usage";

/// Write what jobs get to files that people can review.
#[derive(Debug, Args)]
#[command(after_help = SNAPSHOT_HELP)]
pub(crate) struct Snapshot {
    /// Files, directories (all *.yaml, *.yml and *.json below them) or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Where the snapshots are.
    #[arg(long)]
    pub(crate) dir: PathBuf,
    /// Write nothing; show what would change.
    #[arg(long)]
    pub(crate) check: bool,
}

const DIFF_HELP: &str = "\
A side is a file, a directory, - for standard input, a file or directory of a git revision (REV:path,
from the repository's root), or /dev/null for nothing. Objects that change in the same way stand together.

Examples:
  training-operator diff old.yaml new.yaml
  training-operator diff HEAD:jobs jobs
  training-operator diff origin/main:jobs jobs --format markdown > comment.md
  training-operator diff --cluster job.yaml

With --cluster the old side is what runs: the pods and services of the jobs of the same names. Of these
only what a job decides is compared, not what the cluster adds. Pods that a job does not have any more
because it has ended are shown as added.

Exit codes:
  0  the jobs get the same
  1  they do not
  2  bad YAML, a job that the operator would refuse, a side that cannot be read, no cluster, or bad usage";

/// Show what changes in the pods and services that jobs get.
#[derive(Debug, Args)]
#[command(after_help = DIFF_HELP)]
pub(crate) struct Diff {
    /// The old side, then the new one; with --cluster the new one alone.
    #[arg(value_name = "SIDE", required = true, num_args = 1..=2)]
    pub(crate) sides: Vec<PathBuf>,
    /// Compare with what runs in the cluster.
    #[arg(long)]
    pub(crate) cluster: bool,
    /// How to reach the cluster [default: KUBECONFIG, ~/.kube/config, or the service account of a pod].
    #[arg(long, value_name = "FILE", requires = "cluster")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use [default: its current one].
    #[arg(long, value_name = "NAME", requires = "cluster")]
    pub(crate) context: Option<String>,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = DiffFormat::Text)]
    pub(crate) format: DiffFormat,
}

/// How to show changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffFormat {
    /// Unified diffs, coloured on a terminal.
    Text,
    /// A comment for a pull request.
    Markdown,
}

const EXPLAIN_HELP: &str = "\
Nothing of it is written down anywhere: the operator's own plan is run on made-up failures.

Examples:
  training-operator explain job.yaml
  training-operator explain jobs/ | less

Exit codes:
  0  all jobs are explained
  2  bad YAML, a job that the operator would refuse, or bad usage";

/// Tell a job's life in plain words: start, success, and what follows from each failure.
#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_HELP)]
pub(crate) struct Explain {
    /// Files, directories (all *.yaml, *.yml and *.json below them) or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
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

const COMPLETIONS_HELP: &str = "\
Examples:
  training-operator completions bash > /etc/bash_completion.d/training-operator
  source <(training-operator completions zsh)
  training-operator completions fish > ~/.config/fish/completions/training-operator.fish

Exit codes:
  0  all is well
  2  bad usage";

/// Print what a shell needs to complete commands.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_HELP)]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

const MAN_HELP: &str = "\
Examples:
  training-operator man | man -l -
  training-operator man --dir /usr/local/share/man/man1

Exit codes:
  0  all is well
  2  the files cannot be written, or bad usage";

/// Print the manual page.
#[derive(Debug, Args)]
#[command(after_help = MAN_HELP)]
pub(crate) struct Man {
    /// Write a page for every command into this directory instead.
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
}

/// On this machine.
#[derive(Debug, Subcommand)]
pub(crate) enum Local {
    /// Run jobs until they end, each replica as a process.
    #[command(after_help = LOCAL_RUN_HELP)]
    Run(local_run::Args),
    /// Be a node of a cluster: run its pods as processes.
    #[command(after_help = LOCAL_NODE_HELP)]
    Node(local_node::Args),
}

const LOCAL_RUN_HELP: &str = "\
The operator, an in-memory Kubernetes API and a node agent run in this one process. Images are not
pulled: the containers' commands run as they are found here.

Examples:
  training-operator local run examples/mxnet/train.yaml --venv .venv/mxnet
  training-operator local run job.yaml --workdir ~/src/model --timeout 600 --keep-logs logs
  training-operator local run job.yaml --why

Exit codes:
  0    all jobs Succeeded
  1    a job Failed, or the time-out has passed
  2    bad YAML or usage
  130  ended by Ctrl-C; a second Ctrl-C kills at once";

const LOCAL_NODE_HELP: &str = "\
For a cluster without kubelets, such as a bare control plane in a test, and to try jobs of a
cluster on this machine. It is scheduler and kubelet in one:

* It takes every pod of the default scheduler that has no node, of --namespace or of all. In a
  cluster with a scheduler use --no-bind: then only pods come that the scheduler puts here, which
  must tolerate the node's taint training.kubeflow.org/node-agent:NoSchedule.
* Images are not pulled: containers' commands run as they are found here, as your user. Whoever
  may create pods in the cluster runs programs on this machine.
* It needs the rights to list, watch, get and delete pods, to create pods/binding, to patch
  pods/status, to list services, to get the ConfigMaps and Secrets that pods name, and for its
  Node object to get, create and delete nodes and to patch nodes/status.

While the API server cannot be reached, pods go on, and their states are reported when it is back.
Ctrl-C or SIGTERM ends the pods' processes (SIGTERM, after 10 s SIGKILL), reports how they ended
(those that failed with reason Terminated), and removes the node. If the node is killed, its
processes end with it; the next one of the same name reports their pods as Failed with exit code
137, so that operators restart what may be restarted.

Examples:
  training-operator local node --kubeconfig admin.conf --venv .venv/mxnet --workdir examples/mxnet
  training-operator local node --namespace training --keep-logs logs
  training-operator local node --context staging --name local-mine --no-bind

Exit codes:
  0    ended by Ctrl-C or SIGTERM
  2    the cluster cannot be used, the name is taken, or bad usage
  130  killed at once by a second Ctrl-C";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
