//! Finds the cluster of a process.

use std::path::{Path, PathBuf};

use kube::Config;
use kube::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};

/// An error while the configuration of the cluster is loaded.
#[derive(Debug, thiserror::Error)]
pub enum ClusterConfigError {
    /// The given kubeconfig cannot be used.
    #[error(transparent)]
    Kubeconfig(KubeconfigError),
    /// The given context cannot be used.
    #[error(transparent)]
    Context(KubeconfigError),
    /// No kubeconfig was given, and there is no default.
    #[error(transparent)]
    Infer(InferConfigError),
}

/// Returns the value of a variable that deployments of older operators set; `None` if it is empty.
pub(super) fn fallback(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}

/// Loads the address of a cluster and the credentials from the first of these sources:
///
/// * `kubeconfig`
/// * the file in `$USE_KUBE_CONFIG`, which deployments of older operators set
/// * `$KUBECONFIG` or `~/.kube/config`
/// * the service account of the pod in which this process runs, unless a `context` is given
///
/// The client's own retries are off, because the caller decides what is retried.
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
