//! Clients for clusters.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use kube::Client;
use training_job::process::{ClusterConfigError, cluster_config};

/// How long the API server may take to answer.
const API_TIMEOUT: Duration = Duration::from_secs(30);

/// The answer to a call.
///
/// # Errors
/// There is none in time.
pub(crate) async fn within<T>(call: impl Future<Output = T>) -> anyhow::Result<T> {
    let answer = tokio::time::timeout(API_TIMEOUT, call).await;
    answer.context("no answer within 30 s")
}

/// A client for the cluster that the kubeconfig names, and the server's address.
///
/// # Errors
/// There is no configuration, or it cannot be used.
pub(crate) async fn client(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
) -> anyhow::Result<(Client, String)> {
    let config = match cluster_config(kubeconfig, context).await {
        Ok(config) => config,
        Err(ClusterConfigError::Kubeconfig(error)) => return Err(error).context("--kubeconfig"),
        Err(ClusterConfigError::Context(error)) => return Err(error).context("--context"),
        Err(ClusterConfigError::Infer(error)) => {
            return Err(error).context("no cluster is configured: name one with --kubeconfig");
        }
    };
    let server = config.cluster_url.to_string();
    Ok((Client::try_from(config)?, server.trim_end_matches('/').to_owned()))
}
