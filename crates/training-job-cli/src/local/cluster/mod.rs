//! `local cluster`: a Kubernetes API for training jobs, with the operator and a node that runs pods as processes.

mod kubeconfig;

use std::path::PathBuf;
use std::process::ExitCode;

use training_job_local::Jobs;

use super::pod_output::{note, print_event};
use super::processes::ProcessArgs;
use super::signals::Signals;
use crate::controller_config::ControllerConfigArgs;
use crate::help::help;
use crate::kinds::Kinds;

use kubeconfig::{KubeconfigFile, default_path};

const HELP: &str = "\
The operator, an in-memory Kubernetes API and a node agent run in this process, until Ctrl-C. kubectl
and other clients use the API with the kubeconfig that is written at the start and removed at the
end. Images are not pulled: the containers' commands run on this machine, as your user. The API
listens on a loopback address, and needs the token of the kubeconfig, which only you can read.

All objects are in memory and end with the process. Output of pods is printed here, because the API has
no kubectl logs, exec or attach. kubectl get has no columns of its own, and rules of definitions are
checked by the operator instead of the API: a bad job is created, and fails.

Examples:
  {program} local cluster --venv .venv --workdir ~/src/model
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

    /// The directory in which the processes start; a relative `workingDir` of a container is resolved against it
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub workdir: PathBuf,

    #[command(flatten)]
    pub processes: ProcessArgs,

    #[command(flatten)]
    pub controller_config: ControllerConfigArgs,
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
    let mut file = KubeconfigFile::create(path)?;
    let mut cluster = jobs.cluster(config).await?;
    file.write(cluster.kubeconfig())?;
    let shown = file.path().display();
    note(&format!(
        "cluster ready; use it with: kubectl --kubeconfig {shown} get pods"
    ));
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
