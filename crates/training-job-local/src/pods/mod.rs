//! The sub-resources of pods that a kubelet serves: `log`, `exec` and `attach`.

#[cfg(feature = "cluster")]
mod channels;
mod container;
mod logs;
mod query;
#[cfg(feature = "cluster")]
mod remote;

use std::sync::Arc;

use kube_memory::{Cluster, Subresource, SubresourceRequest, SubresourceResponse, failure_response};
use local_node::Containers;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use logs::log;
#[cfg(feature = "cluster")]
use remote::{attach, exec};

/// The maximum number of clients that read output at a time.
const MAX_LOG_READERS: usize = 1_024;

/// The maximum number of commands in pods at a time, and of attached clients.
#[cfg(feature = "cluster")]
const MAX_SESSIONS: usize = 128;

/// The containers of the node, and the limits of their clients.
#[derive(Clone)]
struct Pods {
    containers: Containers,
    readers: Arc<Semaphore>,
    #[cfg(feature = "cluster")]
    sessions: Arc<Semaphore>,
}

impl Pods {
    fn new(containers: Containers) -> Self {
        Self {
            containers,
            readers: Arc::new(Semaphore::new(MAX_LOG_READERS)),
            #[cfg(feature = "cluster")]
            sessions: Arc::new(Semaphore::new(MAX_SESSIONS)),
        }
    }
}

/// Serves the output of the pods of the cluster's only node.
pub(super) fn serve_logs(cluster: &Cluster, containers: Containers) {
    serve_logs_of(cluster, &Pods::new(containers));
}

fn serve_logs_of(cluster: &Cluster, pods: &Pods) {
    let of = pods.clone();
    cluster.serve_subresource(Subresource::new("pods", "log", "Pod", &["get"], move |request| {
        log(of.clone(), request)
    }));
}

/// Serves all sub-resources for the pods of the cluster's only node.
#[cfg(feature = "cluster")]
pub(super) fn serve(cluster: &Cluster, containers: Containers) {
    let pods = Pods::new(containers);
    serve_logs_of(cluster, &pods);
    let of = pods.clone();
    let verbs = ["create", "get"];
    cluster.serve_subresource(Subresource::new(
        "pods",
        "exec",
        "PodExecOptions",
        &verbs,
        move |request| exec(of.clone(), request),
    ));
    cluster.serve_subresource(Subresource::new(
        "pods",
        "attach",
        "PodAttachOptions",
        &verbs,
        move |request| attach(pods.clone(), request),
    ));
}

/// Returns a permit, or the response that there are too many clients.
fn permit(limit: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Box<SubresourceResponse>> {
    let permit = Arc::clone(limit).try_acquire_owned();
    permit.map_err(|_| {
        Box::new(failure_response(
            429,
            "TooManyRequests",
            "too many clients read from pods; end some",
        ))
    })
}

fn bad_request(message: &str) -> SubresourceResponse {
    failure_response(400, "BadRequest", message)
}

fn name_of(request: &SubresourceRequest) -> (String, String) {
    let text = |key| request.object.meta(key).and_then(|value| value.as_str());
    let text = |key| text(key).unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}
