//! `training-operator remote-shell exec`: runs a command with the exec subresource, by WebSocket.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use futures::try_join;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::Api;
use kube::api::{AttachParams, AttachedProcess};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, stderr, stdin, stdout};
use tracing_subscriber::EnvFilter;

use super::wait::wait_until_running;
use training_job_cli::Failure;
use training_job_cli::cluster;
use training_job_cli::help;
use training_job_controller::process::ClusterFlags;

const HELP: &str = "\
Waits up to a minute for a missing pod, and without limit for a container that has not started. In a
launcher's pod, the cluster, the namespace and the permissions are those of the pod's service
account, which must be allowed to get, list and watch pods, and to get and create pods/exec.

Examples:
  training-operator remote-shell exec moons-worker-0 -- hostname
  tar c . | training-operator remote-shell exec --stdin moons-worker-0 --container mpi -- tar x -C /work

Exit codes:
  that of the command; 2 also if the command cannot be run, and for bad usage";

/// Run a command in a pod, and return its output and its exit code.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub(crate) struct Args {
    /// The name of the pod
    #[arg(value_name = "POD")]
    pod: String,
    /// The container [default: the one of the annotation kubectl.kubernetes.io/default-container, or the first]
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    /// Pass standard input to the command
    #[arg(short = 'i', long)]
    stdin: bool,
    /// The pod's namespace [default: the namespace of the context, or of this pod]
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// The kubeconfig file [default: KUBECONFIG, ~/.kube/config, or the service account of this pod]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The command and its arguments, which no shell expands
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) fn run(arguments: &Args) -> Result<ExitCode, Failure> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn,kube_client=off"));
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_env_filter(filter)
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let ended = runtime.block_on(exec(arguments));
    // A blocked read of standard input would delay an ordinary shutdown of the runtime.
    runtime.shutdown_background();
    let code = ended.map_err(|error| Failure::new(&arguments.pod, format!("{error:#}")))?;
    Ok(ExitCode::from(code))
}

async fn exec(arguments: &Args) -> anyhow::Result<u8> {
    let Args {
        kubeconfig, context, ..
    } = arguments;
    let flags = ClusterFlags::new(kubeconfig.as_deref(), context.as_deref());
    let (client, _) = cluster::client(&flags).await?;
    let namespace = arguments.namespace.as_deref();
    let namespace = namespace.unwrap_or(client.default_namespace()).to_owned();
    let pods: Api<Pod> = Api::namespaced(client, &namespace);
    let container = wait_until_running(&pods, &arguments.pod, arguments.container.as_deref()).await?;
    let parameters = AttachParams::default()
        .container(container)
        .stdin(arguments.stdin);
    let process = pods.exec(&arguments.pod, &arguments.command, &parameters).await?;
    copy_streams(process).await
}

/// Copies the standard streams until the command ends. Returns its exit code.
async fn copy_streams(mut process: AttachedProcess) -> anyhow::Result<u8> {
    let status = process
        .take_status()
        .context("the API server sent no status channel")?;
    if let Some(mut input) = process.stdin() {
        tokio::spawn(async move {
            // A command may end without reading all input, so errors are ignored. The end of input is always sent.
            let _ = tokio::io::copy(&mut stdin(), &mut input).await;
            let _ = input.shutdown().await;
        });
    }
    let (output, errors) = (process.stdout(), process.stderr());
    try_join!(copy_stream(output, stdout()), copy_stream(errors, stderr()))?;
    match status.await {
        Some(status) => exit_code(status),
        None => {
            process.join().await.context("the connection failed")?;
            bail!("the connection was closed before the command ended")
        }
    }
}

async fn copy_stream(
    from: Option<impl AsyncRead + Unpin>,
    mut to: impl AsyncWrite + Unpin,
) -> anyhow::Result<()> {
    let Some(mut from) = from else {
        return Ok(());
    };
    tokio::io::copy(&mut from, &mut to).await.context("output")?;
    to.flush().await.context("output")
}

/// Returns the exit code in the last status of a command.
///
/// # Errors
/// The command did not run, or the status has no exit code.
fn exit_code(status: Status) -> anyhow::Result<u8> {
    if status.status.as_deref() == Some("Success") {
        return Ok(0);
    }
    let causes = status
        .details
        .and_then(|details| details.causes)
        .unwrap_or_default();
    let code = causes
        .into_iter()
        .find(|cause| cause.reason.as_deref() == Some("ExitCode"))
        .and_then(|cause| cause.message);
    match code.and_then(|code| code.parse().ok()) {
        Some(code) => Ok(code),
        None => bail!(
            "{}",
            status
                .message
                .unwrap_or_else(|| "the command failed without a message".to_owned())
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::exit_code;

    #[test]
    fn the_last_status_has_the_exit_code() {
        let code = |status| exit_code(serde_json::from_value(status).unwrap()).map_err(|e| e.to_string());
        assert_eq!(code(json!({"status": "Success"})), Ok(0));
        let causes = json!({"causes": [{"reason": "Other"}, {"reason": "ExitCode", "message": "137"}]});
        let failure = json!({"status": "Failure", "reason": "NonZeroExitCode", "details": causes});
        assert_eq!(code(failure), Ok(137));
        let lost = json!({"status": "Failure", "reason": "InternalError", "message": "no such container"});
        assert_eq!(code(lost), Err("no such container".to_owned()));
        let silent = code(json!({"status": "Failure"})).unwrap_err();
        assert!(silent.contains("without a message"), "{silent}");
    }
}
