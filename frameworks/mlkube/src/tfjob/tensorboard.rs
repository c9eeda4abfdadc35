//! TensorBoard: a pod and a service in addition to those of the replicas.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, Service};
use serde_json::json;
use training_job::{JobObject, ObjectKind};

use super::spec::TensorBoard;

pub(super) const SERVICE: ObjectKind = ObjectKind::of::<Service>();
pub(super) const POD: ObjectKind = ObjectKind::of::<Pod>();

const TENSORBOARD_PORT: i32 = 6006;

/// Returns the service and the pod of a job's TensorBoard. The kubelet restarts the pod's container.
pub(super) fn objects(board: &TensorBoard, job: &str, runtime_id: &str, image: &str) -> Vec<JobObject> {
    let name = format!("tensorboard-{runtime_id}");
    let labels: BTreeMap<String, String> = [
        ("app", "tensorboard"),
        ("mlkube.io", ""),
        ("runtime_id", runtime_id),
        ("tf_job_name", job),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    let service = json!({"spec": {
        "type": board.service_type(),
        "selector": labels,
        "ports": [{"name": "tb-port", "port": 80, "targetPort": TENSORBOARD_PORT}],
    }});
    let pod = json!({"spec": {
        "restartPolicy": "Always",
        "containers": [{
            "name": "tensorboard",
            "image": image,
            "command": ["tensorboard", "--logdir", board.log_dir, "--host", "0.0.0.0"],
            "ports": [{"name": "tb-port", "containerPort": TENSORBOARD_PORT}],
            "volumeMounts": board.volume_mounts.as_deref().unwrap_or_default(),
        }],
        "volumes": board.volumes.as_deref().unwrap_or_default(),
    }});
    let mut objects = vec![SERVICE.object(&name, service), POD.object(name, pod)];
    for object in &mut objects {
        object.metadata.labels = Some(labels.clone());
    }
    objects
}
