//! Nodes without machines: pods go through their phases by a script.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use training_job::memory::Cluster;

/// How long a pod takes to start, and to stop.
const MOMENT: Duration = Duration::from_secs(1);

/// What becomes of a pod once it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It runs until it is deleted.
    Runs,
    /// It ends well after so many seconds.
    Succeeds(u64),
    /// It ends with this code after so many seconds.
    Fails(i32, u64),
}

pub(crate) type Script = Box<dyn Fn(&str, u32) -> Fate + Send + Sync>;

/// The attempt that a pod was made for.
pub(crate) fn attempt(pod: &Value) -> u32 {
    let annotation = &pod["metadata"]["annotations"]["training.kubeflow.org/restart-attempt"];
    annotation.as_str().map_or(0, |a| a.parse().unwrap())
}

/// Runs all pods of a cluster for ever. `script` says what becomes of one, by name and attempt.
pub(crate) async fn run(cluster: Cluster, script: Script) {
    let changed = Arc::new(Notify::new());
    let notify = changed.clone();
    cluster.on_change(move |_, change| {
        if change.plural() == "pods" {
            notify.notify_one();
        }
    });
    let client = cluster.client("default");
    let mut since = BTreeMap::new();
    loop {
        let next = look(&cluster, &client, &script, &mut since).await;
        match next {
            Some(at) => tokio::select! { biased; () = changed.notified() => {}, () = sleep_until(at) => {} },
            None => changed.notified().await,
        }
    }
}

async fn look(
    cluster: &Cluster,
    client: &Client,
    script: &Script,
    since: &mut BTreeMap<(String, String), Instant>,
) -> Option<Instant> {
    let mut next: Option<Instant> = None;
    for object in cluster.list("pods", None) {
        let pod = object.value();
        let text = |pointer| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let deleting = !text("/metadata/deletionTimestamp").is_empty();
        let stage = if deleting {
            "deleting"
        } else {
            text("/status/phase")
        };
        let begun = *since
            .entry((text("/metadata/uid").to_owned(), stage.to_owned()))
            .or_insert_with(Instant::now);
        let wait = match (stage, script(name, attempt(pod))) {
            ("deleting" | "Pending" | "", _) => MOMENT,
            ("Running", Fate::Succeeds(s) | Fate::Fails(_, s)) => Duration::from_secs(s),
            _ => continue,
        };
        let due = begun + wait;
        if due > Instant::now() {
            next = Some(next.map_or(due, |at| at.min(due)));
            continue;
        }
        let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
        match (stage, script(name, attempt(pod))) {
            ("deleting", _) => {
                let _ = api.delete(name, &DeleteParams::default().grace_period(0)).await;
            }
            ("Running", Fate::Fails(code, _)) => end(&api, name, "Failed", code).await,
            ("Running", _) => end(&api, name, "Succeeded", 0).await,
            _ => start(client, &api, namespace, name).await,
        }
    }
    next
}

async fn start(client: &Client, api: &Api<Pod>, namespace: &str, name: &str) {
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}});
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/binding");
    let request = Request::post(path).header("content-type", "application/json");
    let _ = client
        .request::<Value>(request.body(binding.to_string().into_bytes()).unwrap())
        .await;
    set_status(api, name, json!({"phase": "Running"})).await;
}

async fn end(api: &Api<Pod>, name: &str, phase: &str, code: i32) {
    let reason = if code == 0 { "Completed" } else { "Error" };
    let status = json!({"phase": phase, "containerStatuses": [{
        "name": "mxnet", "image": "i", "imageID": "i", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": code, "reason": reason}},
    }]});
    set_status(api, name, status).await;
}

/// Writes a pod's status, if the pod is there.
async fn set_status(api: &Api<Pod>, name: &str, status: Value) {
    let patch = Patch::Merge(json!({"status": status}));
    let _ = api.patch_status(name, &PatchParams::default(), &patch).await;
}
