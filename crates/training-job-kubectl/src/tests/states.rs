//! A job in each of its states, and its pods.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use training_job_mxnet::MXJob;
use training_job_pytorch::PyTorchJob;
use training_job_review::Kinds;

use crate::observe::ObservedJob;
use crate::stored::StoredJob;

const NOW: &str = "2026-01-01T01:00:00Z";

pub(super) fn now() -> Timestamp {
    NOW.parse().unwrap()
}

pub(super) fn kinds() -> Kinds {
    Kinds::default().kind::<MXJob>().kind::<PyTorchJob>()
}

pub(super) fn role(replicas: u32, restart_policy: &str) -> Value {
    let container = json!({
        "name": "mxnet", "image": "example.com/train:1", "command": ["python3", "train.py"],
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "1"}},
    });
    json!({"replicas": replicas, "restartPolicy": restart_policy, "template": {"spec": {"containers": [container]}}})
}

/// Returns an MXJob with one scheduler, one server and two workers.
pub(super) fn job(name: &str, status: Value) -> Value {
    json!({
        "apiVersion": "kubeflow.org/v1", "kind": "MXJob",
        "metadata": {"name": name, "namespace": "ml", "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "jobMode": "MXTrain",
            "runPolicy": {"backoffLimit": 3, "cleanPodPolicy": "Running", "activeDeadlineSeconds": 7200},
            "mxReplicaSpecs": {
                "Scheduler": role(1, "ExitCode"), "Server": role(1, "ExitCode"), "Worker": role(2, "ExitCode"),
            },
        },
        "status": status,
    })
}

fn condition(type_: &str, minute: u32, message: &str) -> Value {
    json!({
        "type": type_, "status": "True", "reason": format!("MXJob{type_}"), "message": message,
        "lastTransitionTime": format!("2026-01-01T00:{minute:02}:00Z"),
    })
}

fn killed() -> Value {
    json!({
        "summary": "worker-1: exit 137 (OOMKilled)", "reason": "OOMKilled", "message": "step 40/1000 loss=0.53\nKilled",
        "role": "Worker", "index": 1, "pod": "train-worker-1", "container": "mxnet", "exitCode": 137,
        "time": "2026-01-01T00:30:00Z",
    })
}

fn counts(scheduler: Value, server: Value, worker: Value) -> Value {
    json!({"Scheduler": scheduler, "Server": server, "Worker": worker})
}

pub(super) fn running() -> Value {
    let one = json!({"active": 1, "ready": 1});
    job(
        "train",
        json!({
            "conditions": [condition("Created", 0, "MXJob train is created."), condition("Running", 31, "MXJob train is running.")],
            "replicaStatuses": counts(one.clone(), one, json!({"active": 2, "ready": 1})),
            "startTime": "2026-01-01T00:00:00Z", "restartCount": 1, "ready": "3/4",
            "failure": killed(), "recovery": {"job": 1},
        }),
    )
}

pub(super) fn waiting() -> Value {
    job(
        "waits",
        json!({
            "conditions": [condition("Created", 0, "MXJob waits is created.")],
            "startTime": "2026-01-01T00:00:00Z", "waitingReason": "Unschedulable", "ready": "0/4",
        }),
    )
}

pub(super) fn restarting() -> Value {
    job(
        "restarts",
        json!({
            "conditions": [condition("Created", 0, "MXJob restarts is created."), condition("Restarting", 59, "Worker failed.")],
            "startTime": "2026-01-01T00:00:00Z", "restartCount": 3, "failure": killed(), "failureHistory": [killed()],
            "recovery": {"job": 3, "backoff": {"job": {"failures": 3, "until": "2026-01-01T01:00:40Z"}}},
        }),
    )
}

pub(super) fn suspended() -> Value {
    let mut job = job(
        "queued",
        json!({"conditions": [condition("Suspended", 1, "MXJob queued is suspended.")]}),
    );
    job["metadata"]["labels"] = json!({"kueue.x-k8s.io/queue-name": "gpu"});
    job["spec"]["runPolicy"]["suspend"] = json!(true);
    job
}

pub(super) fn failed() -> Value {
    let ended = json!({"succeeded": 0, "failed": 0});
    job(
        "broken",
        json!({
            "conditions": [condition("Created", 0, "MXJob broken is created."), condition("Failed", 30, "worker-1 has exit code 1.")],
            "replicaStatuses": counts(ended.clone(), ended, json!({"failed": 1})),
            "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:30:00Z", "failure": killed(),
        }),
    )
}

pub(super) fn succeeded() -> Value {
    let mut job = job(
        "done",
        json!({
            "conditions": [condition("Succeeded", 50, "MXJob done is successfully completed.")],
            "replicaStatuses": counts(json!({"succeeded": 1}), json!({}), json!({"succeeded": 2})),
            "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:50:00Z",
        }),
    );
    job["spec"]["runPolicy"]["ttlSecondsAfterFinished"] = json!(3_600);
    job
}

pub(super) fn invalid() -> Value {
    let mut job = job(
        "invalid",
        json!({"conditions": [condition("Failed", 0, "spec.mxReplicaSpecs: must have a Worker\n…")]}),
    );
    job["spec"]["mxReplicaSpecs"] = json!({"Boss": role(1, "Never")});
    job
}

pub(super) fn stored(object: Value) -> StoredJob {
    let kinds = kinds();
    let kind = kinds.named(object["kind"].as_str().unwrap()).unwrap();
    StoredJob::of_value(kind, object)
}

/// Returns the pod of a replica with this status.
pub(super) fn pod(job: &str, replica: &str, status: Value) -> Pod {
    let (role, index) = replica.rsplit_once('-').unwrap();
    let pod = json!({
        "metadata": {
            "name": format!("{job}-{replica}"), "namespace": "ml", "uid": format!("{job}-{replica}"),
            "creationTimestamp": "2026-01-01T00:31:00Z",
            "labels": {"training.kubeflow.org/replica-type": role, "training.kubeflow.org/replica-index": index},
        },
        "spec": {"nodeName": "node-1", "containers": role_container()},
        "status": status,
    });
    serde_json::from_value(pod).unwrap()
}

fn role_container() -> Value {
    role(1, "Never")["template"]["spec"]["containers"].clone()
}

pub(super) fn runs(is_ready: bool) -> Value {
    json!({
        "phase": "Running", "conditions": [{"type": "Ready", "status": if is_ready { "True" } else { "False" }}],
        "containerStatuses": [{"name": "mxnet", "image": "i", "imageID": "i", "ready": is_ready, "restartCount": 0,
            "state": {"running": {"startedAt": "2026-01-01T00:31:05Z"}}}],
    })
}

pub(super) fn ended(code: i32, reason: &str) -> Value {
    json!({
        "phase": if code == 0 { "Succeeded" } else { "Failed" },
        "containerStatuses": [{"name": "mxnet", "image": "i", "imageID": "i", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": code, "reason": reason, "finishedAt": "2026-01-01T00:30:00Z"}}}],
    })
}

pub(super) fn unschedulable() -> Value {
    json!({"phase": "Pending", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
    }]})
}

pub(super) fn observed(object: Value, pods: Vec<Pod>) -> ObservedJob {
    ObservedJob {
        job: stored(object),
        pods,
        events: Vec::new(),
        forbidden: Vec::new(),
        now: now(),
    }
}

pub(super) fn of_all(job: &str, status: &Value) -> Vec<Pod> {
    let replicas = ["scheduler-0", "server-0", "worker-0", "worker-1"];
    replicas
        .iter()
        .map(|replica| pod(job, replica, status.clone()))
        .collect()
}
