//! How a process finds its cluster.

use std::path::{Path, PathBuf};

use kube::Config;
use kube::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};

/// Why no cluster is found.
#[derive(Debug, thiserror::Error)]
pub enum ClusterConfigError {
    /// The kubeconfig that was named cannot be used.
    #[error(transparent)]
    Kubeconfig(KubeconfigError),
    /// The context that was named cannot be used.
    #[error(transparent)]
    Context(KubeconfigError),
    /// Nothing was named, and there is no default.
    #[error(transparent)]
    Infer(InferConfigError),
}

/// The value of a variable that deployments of older operators set; none if it is empty.
pub(super) fn fallback(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}

/// The address of a cluster, and who calls it: from `kubeconfig`, else from the file that `$USE_KUBE_CONFIG` names, as
/// deployments of older operators have it, else from `$KUBECONFIG` or `~/.kube/config`, else, if
/// no `context` is named, from the service account of the pod in which this process runs.
///
/// The client's own retries are off: whoever calls decides what is retried.
///
/// # Errors
/// There is no configuration, or it cannot be used.
pub async fn cluster_config(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
) -> Result<Config, ClusterConfigError> {
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    let older = fallback("USE_KUBE_CONFIG").map(PathBuf::from);
    let mut config = match (kubeconfig.or(older.as_deref()), context) {
        (Some(file), _) => {
            let file = Kubeconfig::read_from(file).map_err(ClusterConfigError::Kubeconfig)?;
            Config::from_custom_kubeconfig(file, &options)
                .await
                .map_err(ClusterConfigError::Kubeconfig)?
        }
        (None, Some(_)) => Config::from_kubeconfig(&options)
            .await
            .map_err(ClusterConfigError::Context)?,
        (None, None) => Config::infer().await.map_err(ClusterConfigError::Infer)?,
    };
    config.default_retry = false;
    Ok(config)
}
