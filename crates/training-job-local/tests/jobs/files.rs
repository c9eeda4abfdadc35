//! Manifests with objects other than jobs, and manifests from a cluster.

use serde_json::{Value, json};
use training_job_local::{Jobs, NodeConfig};

use super::bad_manifest::jobs;

/// A job whose container prints this, with fields that an API server sets.
fn exported(script: &str, env: &Value) -> Value {
    json!({
        "apiVersion": "kubeflow.org/v1", "kind": "ToyJob",
        "metadata": {
            "name": "blocks", "resourceVersion": "4711", "uid": "4f7c", "generation": 3,
            "creationTimestamp": "2024-01-01T00:00:00Z",
            "managedFields": [{"manager": "kubectl", "operation": "Update"}],
            "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "9a1b"}],
        },
        "spec": {"replicaSpecs": {"Worker": {"replicas": 1, "restartPolicy": "Never", "template": {"spec": {
            "containers": [{"name": "toy", "image": "toy", "command": ["sh", "-c", script], "env": env}],
        }}}}},
        "status": {"conditions": [{"type": "Failed", "status": "True"}]},
    })
}

/// Runs the jobs, and returns the output of their processes.
async fn output(jobs: Jobs) -> Vec<String> {
    let mut run = jobs.start(NodeConfig::default()).await.unwrap();
    let mut lines = Vec::new();
    while let Some(event) = run.next().await {
        lines.extend(
            event
                .line()
                .and_then(|line| Some(line.split_once(" | ")?.1.to_owned())),
        );
    }
    assert!(run.succeeded(), "{:?}", run.dead_ends());
    lines
}

#[tokio::test]
async fn a_job_of_a_cluster_runs() {
    let jobs = jobs().job(&exported("echo runs", &json!([]))).unwrap();
    assert_eq!(output(jobs).await, ["runs"]);
}

#[tokio::test]
async fn values_come_from_the_config_maps_and_secrets_of_the_manifest() {
    let key = |source: &str, name: &str| json!({source: {"name": name, "key": "key"}});
    let mut job = exported(
        "echo $RATE $TOKEN; cat /tokens/raw /rates/raw | od -An -tx1",
        &json!([
            {"name": "RATE", "valueFrom": key("configMapKeyRef", "rates")},
            {"name": "TOKEN", "valueFrom": key("secretKeyRef", "tokens")},
        ]),
    );
    let pod = &mut job["spec"]["replicaSpecs"]["Worker"]["template"]["spec"];
    pod["volumes"] = json!([
        {"name": "rates", "configMap": {"name": "rates"}}, {"name": "tokens", "secret": {"secretName": "tokens"}},
    ]);
    pod["containers"][0]["volumeMounts"] =
        json!([{"name": "rates", "mountPath": "/rates"}, {"name": "tokens", "mountPath": "/tokens"}]);
    let manifest = format!(
        "{job}\n---\n{}\n---\n{}",
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rates", "uid": "1"},
            "data": {"key": "0.1"}, "binaryData": {"raw": "/wA="}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tokens"},
            "stringData": {"key": "hush"}, "data": {"raw": "/oA="}}),
    );
    assert_eq!(
        output(jobs().yaml(&manifest).unwrap()).await,
        ["0.1 hush", " fe 80 ff 00"]
    );
}

#[test]
fn a_bad_config_map_is_reported() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: rates}\ndata: [1]\n";
    let error = jobs().yaml(text).unwrap_err();
    assert!(error.is_bad_input());
    assert_eq!(
        error.to_string(),
        "<yaml>:1:1: invalid type: sequence, expected a map"
    );
}
