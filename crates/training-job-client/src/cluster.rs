//! Clients of clusters.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use kube::Client;
use training_job_controller::process;
use training_job_controller::process::{ClusterFlags, cluster_config};
use training_job_review::Failure;

use crate::call_error::failure_of;

const API_TIMEOUT: Duration = Duration::from_secs(30);

/// The flags that select a cluster, for commands that read one with `--cluster`.
#[derive(Debug, clap::Args)]
pub struct ClusterArgs {
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
pub fn run_with_client<T>(
    connection: &ClusterArgs,
    calls: impl AsyncFnOnce(Client) -> anyhow::Result<T>,
) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let flags = ClusterFlags::new(connection.kubeconfig.as_deref(), connection.context.as_deref());
    let result = runtime.block_on(async { calls(client(&flags).await?.0).await });
    result.map_err(|error| failure_of("--cluster", &error))
}
