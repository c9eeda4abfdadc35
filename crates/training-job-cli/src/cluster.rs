//! Clients of clusters.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow};
use kube::Client;
use kube::api::ApiResource;
use training_job_controller::process;
use training_job_controller::process::{ClusterFlags, cluster_config};

use crate::exit::Failure;

const API_TIMEOUT: Duration = Duration::from_secs(30);

/// The flags that select a cluster, for commands that read one with `--cluster`.
#[derive(Debug, clap::Args)]
pub(crate) struct ClusterArgs {
    /// The kubeconfig file [default: KUBECONFIG, ~/.kube/config, or the service account of a pod].
    #[arg(long, value_name = "FILE", requires = "cluster")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: its current context].
    #[arg(long, value_name = "NAME", requires = "cluster")]
    context: Option<String>,
}

/// Returns the response to a call.
///
/// # Errors
/// The call takes longer than 30 s.
pub async fn with_timeout<T>(call: impl Future<Output = T>) -> anyhow::Result<T> {
    let response = tokio::time::timeout(API_TIMEOUT, call).await;
    response.context("no response within 30 s")
}

/// Returns a client of the cluster that the flags select, and the address of its API server.
///
/// # Errors
/// There is no configuration, or it is not usable.
pub async fn client(flags: &ClusterFlags) -> anyhow::Result<(Client, String)> {
    let cluster = cluster_config(flags).await?;
    let server = cluster.config.cluster_url.to_string();
    Ok((
        process::client(&cluster)?,
        server.trim_end_matches('/').to_owned(),
    ))
}

/// Runs calls with a client of the cluster that the flags name.
///
/// # Errors
/// The cluster is not configured, or a call failed.
pub(crate) fn run_with_client<T>(
    connection: &ClusterArgs,
    calls: impl AsyncFnOnce(Client) -> anyhow::Result<T>,
) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let flags = ClusterFlags::new(connection.kubeconfig.as_deref(), connection.context.as_deref());
    let result = runtime.block_on(async { calls(client(&flags).await?.0).await });
    result.map_err(|error| Failure::of_error("--cluster", &error))
}

/// Returns the text of a cause. For an error of kube it is the message of the API server, or what the client reports
/// about the connection, without kube's wrapping.
pub(crate) fn text(cause: &(dyn std::error::Error + 'static)) -> String {
    match cause.downcast_ref::<kube::Error>() {
        Some(kube::Error::Service(error)) => error.to_string(),
        Some(error) if is_unserved(error) => "the API server does not serve this resource".to_owned(),
        Some(kube::Error::Api(status)) if !status.message.is_empty() => status.message.clone(),
        _ => cause.to_string(),
    }
}

/// Returns the error of a call, with a remedy if it is about rights.
pub fn explained(error: kube::Error, verb: &str, resource: &str) -> anyhow::Error {
    match &error {
        kube::Error::Api(status) if status.code == 403 => anyhow!(
            "you are not allowed to {verb} {resource}: {}; the command's --help lists the rights that it needs",
            status.message
        ),
        kube::Error::Api(status) if status.code == 401 => anyhow!(text(&error)),
        kube::Error::Service(_) => anyhow!(text(&error)),
        _ => anyhow!("{verb} {resource}: {}", text(&error)),
    }
}

/// Returns true if the server does not serve the resource of a request. It then responds with plain text, from which kube
/// makes a status with another reason than that of a missing object.
pub(crate) fn is_unserved(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404 && status.reason != "NotFound")
}

/// Returns the problem of a kind that the server does not serve, with its remedy.
pub(crate) fn unserved(resource: &ApiResource) -> String {
    format!(
        "the cluster does not serve {}.{}; install its definition, which `crd --kind {}` of the operator's program prints",
        resource.plural, resource.group, resource.kind
    )
}
