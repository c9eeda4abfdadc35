//! `local cluster`: a Kubernetes API for training jobs, with the operator and a node that runs pods as processes.

mod kubeconfig;
mod merge;

use std::path::PathBuf;
use std::process::ExitCode;

use kubeconfig::{KubeconfigFile, default_path};
use merge::{MergedContext, own_path};
use training_job_client::Signals;
use training_job_local::{DataDirectory, Jobs};
use training_job_program::program;
use training_job_review::controller_config::ControllerConfigArgs;
use training_job_review::help;

use super::pod_output::{note, print_event};
use super::processes::ProcessArgs;
use crate::history::{Limits, keep};
use crate::install::InstalledKinds;
use crate::kinds::Kinds;

const HELP: &str = "\
The operator, an in-memory Kubernetes API and a node agent run in this process, until Ctrl-C. kubectl
and other clients use the API with the kubeconfig that is written at the start and removed at the
end. Images are not pulled: the containers' commands run on this machine, as your user. Pods share its
GPUs by their requests, and stay Pending if it has too few. The API listens on a loopback address, and
needs the token of the kubeconfig, which only you can read.

All objects are in memory and end with the process. Output of pods is printed here, and kept for
kubectl logs until the pod is deleted, 50 MiB for each run of a container.

With --data DIR both outlive the process, however it ends: a change is stored before it is answered. The
processes of pods do not: at the next start their pods have failed, as after a reboot of a node, and the
jobs restart by their policies. On a full disk, changes are refused until there is room again. A power
failure may take the last changes away. DIR is for one cluster at a time, and only you can read it.
DIR/history has the stories of finished jobs, which outlive the jobs (--history).

Limits: kubectl exec and attach have no terminal (-t) and need kubectl 1.31 or later; there is no
port-forward, no metrics (kubectl top) and no authorization: the token may do everything. Rules of
definitions are evaluated, except those with functions of quantities, URLs, addresses, semantic versions
or times.

Examples:
  {program} local cluster --venv .venv --workdir ~/src/model
  {program} local cluster --data ~/.cache/jobs
  {program} local cluster --merge --port 6443
  kubectl --context {program}-local get pods
  {program} local cluster --kubeconfig local.yaml
  kubectl --kubeconfig local.yaml apply -f job.yaml

Exit codes:
  0    ended by Ctrl-C or SIGTERM
  2    the cluster cannot be started, or bad usage
  130  ended at once by a second Ctrl-C";

#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub struct Args {
    /// The kubeconfig file to write [default: ~/.kube/PROGRAM-local]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Add the context PROGRAM-local to your own kubeconfig as well, and remove it at the end; the current context stays
    #[arg(long)]
    pub merge: bool,

    /// The port of the API on 127.0.0.1 [default: any free port]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub port: u16,

    /// Keep the stories of finished jobs in this directory, for `kubectl training report` and `list --finished`; at most 1,000
    /// stories, 256 MiB and 30 days [default: the folder history of --data]
    #[arg(long, value_name = "DIR")]
    pub history: Option<PathBuf>,

    /// The directory in which the processes start; a relative `workingDir` of a container is resolved against it
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub workdir: PathBuf,

    /// Keep all objects, and the output of pods, in this directory, and continue with them at the next start [default: they
    /// end with the process]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,

    #[command(flatten)]
    pub processes: ProcessArgs,

    #[command(flatten)]
    pub(crate) controller_config: ControllerConfigArgs,

    #[command(flatten)]
    pub kinds: InstalledKinds,
}

/// Runs the cluster until a signal arrives. Returns 0, or 128 plus the signal's number after a second signal.
///
/// # Errors
/// The kubeconfig cannot be written, or the cluster cannot start on this machine.
pub(super) async fn run(args: &Args, kinds: &Kinds, jobs: Jobs) -> anyhow::Result<ExitCode> {
    let config = args.processes.node_config(args.workdir.clone(), kinds)?;
    let mut signals = Signals::listen()?;
    let path = match &args.kubeconfig {
        Some(path) => path.clone(),
        None => default_path()?,
    };
    let mut file = KubeconfigFile::reserve(path)?;
    let data = args.data.as_deref().map(DataDirectory::open).transpose()?;
    let history = args
        .history
        .clone()
        .or_else(|| data.as_ref().map(DataDirectory::history));
    let jobs = match history {
        Some(directory) => jobs.finished_jobs(keep(&directory, Limits::default(), kinds)?),
        None => jobs,
    };
    let mut cluster = jobs.cluster(config, args.port, data).await?;
    file.write(cluster.kubeconfig())?;
    // Removes the context at its end.
    let mut _merged = None;
    let option = if args.merge {
        let name = format!("{}-local", program().name);
        _merged = Some(MergedContext::add(own_path()?, &name, cluster.kubeconfig())?);
        format!("--context {name}")
    } else {
        format!("--kubeconfig {}", file.path().display())
    };
    note(&format!("cluster ready; use it with: kubectl {option} get pods"));
    loop {
        tokio::select! {
            biased;
            _ = signals.next() => break,
            Some(event) = cluster.next() => print_event(&event, true, args.processes.why),
        }
    }
    note("stopping; a second signal kills the processes at once");
    tokio::select! {
        biased;
        code = signals.next() => Ok(ExitCode::from(code)),
        () = cluster.stop(|event| print_event(&event, true, args.processes.why)) => Ok(ExitCode::SUCCESS),
    }
}
