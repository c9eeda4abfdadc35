//! Node objects.

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use training_job_testbed::cluster::ControlPlane;

/// Creates a ready node with this number of CPUs, these labels and these taints.
pub(crate) async fn create(plane: &ControlPlane, name: &str, cpus: u32, labels: Value, taints: Value) {
    let api: Api<Node> = Api::all(plane.client());
    let node = json!({"metadata": {"name": name, "labels": labels}});
    let node: Node = serde_json::from_value(node).unwrap();
    api.create(&PostParams::default(), &node).await.unwrap();
    let room = json!({
        "cpu": cpus.to_string(), "memory": "64Gi", "ephemeral-storage": "100Gi", "pods": "110", "nvidia.com/gpu": "8",
    });
    let ready = json!({
        "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let status = json!({"status": {"capacity": room, "allocatable": room, "conditions": [ready]}});
    let (parameters, status) = (PatchParams::default(), Patch::Merge(status));
    api.patch_status(name, &parameters, &status).await.unwrap();
    // Every new node has the taint of a node that is not ready.
    let spec = Patch::Merge(json!({"spec": {"taints": taints}}));
    api.patch(name, &parameters, &spec).await.unwrap();
}
