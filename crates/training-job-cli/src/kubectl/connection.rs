//! The cluster, namespace and credentials of a command.

use std::path::PathBuf;

use kube::Client;
use training_job_controller::process::cluster_config;

use crate::cluster;
use crate::exit::Failure;

/// The flags that select a cluster and a namespace.
#[derive(Debug, clap::Args)]
pub(crate) struct ConnectionArgs {
    /// The namespace [default: the namespace of the context].
    #[arg(short, long, value_name = "NAME", help_heading = "Cluster")]
    pub(super) namespace: Option<String>,
    /// The context of the kubeconfig [default: its current context].
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub(super) context: Option<String>,
    /// The kubeconfig file [default: KUBECONFIG, ~/.kube/config, or the service account of a pod].
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub(super) kubeconfig: Option<PathBuf>,
}

/// A cluster, and the namespace in which a command works.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

/// Runs calls to the cluster that the flags select.
///
/// # Errors
/// The cluster is not configured, or a call failed.
pub(crate) fn connect<T>(
    arguments: &ConnectionArgs,
    calls: impl AsyncFnOnce(Connection) -> anyhow::Result<T>,
) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let result = runtime.block_on(async {
        let (kubeconfig, context) = (arguments.kubeconfig.as_deref(), arguments.context.as_deref());
        let (client, _) = cluster::client(kubeconfig, context).await?;
        let namespace = arguments
            .namespace
            .as_deref()
            .unwrap_or(client.default_namespace());
        let namespace = namespace.to_owned();
        calls(Connection { client, namespace }).await
    });
    result.map_err(|error| Failure::of_error("error", &error))
}

/// Returns the namespace that the flags or the kubeconfig name, without a call to the cluster.
pub(super) fn namespace(arguments: &ConnectionArgs) -> String {
    if let Some(namespace) = &arguments.namespace {
        return namespace.clone();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let config = runtime.ok().and_then(|runtime| {
        let (kubeconfig, context) = (arguments.kubeconfig.as_deref(), arguments.context.as_deref());
        runtime.block_on(cluster_config(kubeconfig, context)).ok()
    });
    config.map_or_else(|| "default".to_owned(), |config| config.default_namespace)
}
