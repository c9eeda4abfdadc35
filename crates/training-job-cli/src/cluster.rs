//! Clients of clusters.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use kube::Client;
use training_job_controller::process::{ClusterConfigError, cluster_config};

const API_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the response to a call.
///
/// # Errors
/// The call takes longer than 30 s.
pub async fn with_timeout<T>(call: impl Future<Output = T>) -> anyhow::Result<T> {
    let response = tokio::time::timeout(API_TIMEOUT, call).await;
    response.context("no response within 30 s")
}

/// Returns a client of the cluster that the kubeconfig names, and the address of its API server.
///
/// # Errors
/// There is no configuration, or it is not usable.
pub async fn client(kubeconfig: Option<&Path>, context: Option<&str>) -> anyhow::Result<(Client, String)> {
    let config = match cluster_config(kubeconfig, context).await {
        Ok(config) => config,
        Err(ClusterConfigError::Kubeconfig(error)) => return Err(error).context("--kubeconfig"),
        Err(ClusterConfigError::Context(error)) => return Err(error).context("--context"),
        Err(ClusterConfigError::Infer(error)) => {
            return Err(error).context("no cluster is configured; set --kubeconfig");
        }
    };
    let server = config.cluster_url.to_string();
    Ok((Client::try_from(config)?, server.trim_end_matches('/').to_owned()))
}
