//! The cluster, namespace and credentials of a command.

use std::future::ready;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use training_job_client::call_error::failure_of;
use training_job_client::cluster;
use training_job_controller::process::{ClusterFlags, cluster_config};
use training_job_review::Failure;

/// The namespace without a kubeconfig.
const DEFAULT_NAMESPACE: &str = "default";

/// The flags that select a cluster and a namespace.
#[derive(Debug, clap::Args)]
pub(crate) struct ConnectionArgs {
    /// The namespace [default: the namespace of the context].
    #[arg(short, long, value_name = "NAME", value_parser = namespace_name, help_heading = "Cluster")]
    pub(crate) namespace: Option<String>,
    #[command(flatten)]
    pub(super) flags: ClusterFlags,
}

fn namespace_name(text: &str) -> Result<String, String> {
    match kube_schema::names::label_1123(text) {
        None => Ok(text.to_owned()),
        Some(_) => Err("must be the name of a namespace: lower-case letters, digits and -".to_owned()),
    }
}

/// A cluster, and the namespace in which a command works.
#[derive(Clone)]
pub struct Connection {
    /// The client.
    pub client: Client,
    /// The namespace.
    pub namespace: String,
}

/// Runs calls to the cluster that the flags select.
///
/// # Errors
/// The cluster is not configured, or a call failed.
pub(crate) fn connect<T>(
    arguments: &ConnectionArgs,
    calls: impl AsyncFnOnce(Connection) -> anyhow::Result<T>,
) -> Result<T, Failure> {
    run(arguments, Err, calls)
}

/// Runs calls to the cluster that the flags select. If it is not configured, each call fails.
///
/// # Errors
/// The calls returned an error.
pub(super) fn connect_if_configured<T>(
    arguments: &ConnectionArgs,
    calls: impl AsyncFnOnce(Connection) -> anyhow::Result<T>,
) -> Result<T, Failure> {
    let failing = |error| {
        let text = failure_of("the cluster is not configured", &error).to_string();
        let send = move |_: Request<Body>| ready(Err::<Response<Body>, _>(text.clone()));
        Ok(Client::new(tower::service_fn(send), DEFAULT_NAMESPACE))
    };
    run(arguments, failing, calls)
}

fn run<T>(
    arguments: &ConnectionArgs,
    unconfigured: impl FnOnce(anyhow::Error) -> anyhow::Result<Client>,
    calls: impl AsyncFnOnce(Connection) -> anyhow::Result<T>,
) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let result = runtime.block_on(async {
        let client = match cluster::client(&arguments.flags).await {
            Ok((client, _)) => client,
            Err(error) => unconfigured(error)?,
        };
        let namespace = arguments
            .namespace
            .as_deref()
            .unwrap_or(client.default_namespace());
        let namespace = namespace.to_owned();
        calls(Connection { client, namespace }).await
    });
    result.map_err(|error| failure_of("error", &error))
}

/// Returns the namespace that the flags or the kubeconfig name, without a call to the cluster.
pub(crate) fn namespace(arguments: &ConnectionArgs) -> String {
    if let Some(namespace) = &arguments.namespace {
        return namespace.clone();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let cluster = runtime
        .ok()
        .and_then(|runtime| runtime.block_on(cluster_config(&arguments.flags)).ok());
    cluster.map_or_else(
        || DEFAULT_NAMESPACE.to_owned(),
        |cluster| cluster.config.default_namespace,
    )
}
