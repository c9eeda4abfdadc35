//! The way to a cluster.

use std::path::Path;

use anyhow::Context;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// A client for what the kubeconfig names, and the server's address.
///
/// # Errors
/// There is no configuration, or it is of no use.
pub(crate) async fn client(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
) -> anyhow::Result<(Client, String)> {
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    let mut config = match (kubeconfig, context) {
        (Some(file), _) => {
            let read = Kubeconfig::read_from(file).context("--kubeconfig")?;
            Config::from_custom_kubeconfig(read, &options)
                .await
                .context("--kubeconfig")?
        }
        (None, Some(_)) => Config::from_kubeconfig(&options).await.context("--context")?,
        (None, None) => Config::infer()
            .await
            .context("no cluster is configured: name one with --kubeconfig")?,
    };
    // Who calls decides what is tried again.
    config.default_retry = false;
    let server = config.cluster_url.to_string();
    Ok((Client::try_from(config)?, server.trim_end_matches('/').to_owned()))
}
