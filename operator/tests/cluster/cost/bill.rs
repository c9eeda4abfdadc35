//! Counts the calls of an operator.

use serde_json::Value;
use tokio::sync::OnceCell;
use training_job_testbed::cluster::{Audit, Call, ControlPlane, Options};

use crate::rig::stage::{Stage, namespace_with_account};

/// Returns the control plane of these tests, whose audit log records all calls.
async fn control_plane() -> &'static ControlPlane {
    static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
    let options = Options {
        audit: Some(Audit::All),
        ..Options::default()
    };
    SHARED.get_or_init(|| ControlPlane::start_at_once(options)).await
}

/// Creates a namespace whose operator is a service account with the permissions of `manifests/`.
pub(crate) async fn stage(name: &str) -> Stage<'static> {
    let cluster = control_plane().await;
    cluster.install_crds().await;
    let namespace = namespace_with_account(cluster, name).await;
    let kubeconfig = cluster
        .kubeconfig_once_allowed(&namespace, "operator", "create", "pods")
        .await;
    Stage::within(cluster, &namespace, &kubeconfig).await
}

/// Returns all calls of a stage's operator so far. A watch is included when it begins.
pub(crate) fn calls(stage: &Stage<'_>) -> Vec<Call> {
    let user = format!("system:serviceaccount:{}:operator", stage.namespace);
    let all = stage.cluster.audit().into_iter();
    all.filter(|call| call.user == user && (call.verb == "watch" || call.stage != "ResponseStarted"))
        .collect()
}

/// The cost of one job.
#[derive(Debug)]
pub(crate) struct Bill {
    /// Creations and deletions of pods, services and ConfigMaps.
    pub(crate) objects: usize,
    /// Each status that was written.
    pub(crate) statuses: Vec<Value>,
    pub(crate) events: usize,
    /// All other calls that name the job.
    pub(crate) others: usize,
}

impl Bill {
    pub(crate) fn of(stage: &Stage<'_>, job: &str) -> Self {
        let names = |call: &Call| {
            let body = call.body.as_ref().and_then(|b| b["metadata"]["name"].as_str());
            let name = if call.name.is_empty() {
                body.unwrap_or_default()
            } else {
                &call.name
            };
            name == job || name.starts_with(&format!("{job}-")) || name.starts_with(&format!("{job}."))
        };
        let all: Vec<_> = calls(stage).into_iter().filter(names).collect();
        let count = |wanted: &dyn Fn(&Call) -> bool| all.iter().filter(|c| wanted(c)).count();
        let object = |c: &Call| {
            matches!(&*c.resource, "pods" | "services" | "configmaps")
                && matches!(&*c.verb, "create" | "delete")
                && c.subresource.is_empty()
        };
        let status = |c: &Call| c.resource == "mxjobs" && c.subresource == "status";
        let event = |c: &Call| c.resource == "events";
        let written = all.iter().filter(|c| status(c)).filter_map(|c| c.body.as_ref());
        Self {
            objects: count(&object),
            statuses: written.map(|body| body["status"].clone()).collect(),
            events: count(&event),
            others: count(&|c| !object(c) && !status(c) && !event(c)),
        }
    }
}
