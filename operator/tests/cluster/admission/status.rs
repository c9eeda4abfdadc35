//! Statuses in job manifests: exported from a cluster, and from other operators.

use serde_json::{Value, json};
use training_job_testbed::cluster::ControlPlane;

/// Returns statuses that a manifest may contain: unknown fields, nulls, and known fields of their types.
fn statuses() -> Vec<Value> {
    vec![
        json!(null),
        json!({}),
        json!({"conditions": null, "replicaStatuses": null, "startTime": null, "recovery": null, "failure": null}),
        // From the stand-alone operator.
        json!({
            "conditions": [{"type": "Running", "status": "True", "reason": "MXJobRunning", "message": "m",
                "lastUpdateTime": "2020-06-01T00:00:00Z", "lastTransitionTime": "2020-06-01T00:00:00Z"}],
            "mxReplicaStatuses": {"Scheduler": {}, "Worker": {"active": 1}}, "startTime": "2020-06-01T00:00:00Z",
            "completionTime": null, "lastReconcileTime": null,
        }),
        // From the Go operator.
        json!({"conditions": [], "replicaStatuses": {"Worker": {"active": 1, "labelSelector": {"matchLabels": {"a": "b"}}}}}),
        // From older operators.
        json!({"phase": "Done", "state": "Succeeded", "reason": "", "controlPaused": false,
            "conditions": [{"type": "Ready", "transitionTime": "2017-12-01T00:00:00Z"}]}),
    ]
}

fn jobs(version: &str) -> Vec<(String, Value)> {
    let job = |kind: &str, field: &str, role: &str, container: &str| {
        let mut job = json!({
            "apiVersion": format!("kubeflow.org/{version}"), "kind": kind,
            "spec": {field: {role: {"template": {"spec": {"containers": [{"name": container, "image": "i"}]}}}}},
        });
        if kind == "MXJob" {
            job["spec"]["jobMode"] = "MXTrain".into();
        }
        job
    };
    let mut kinds = vec![job("MXJob", "mxReplicaSpecs", "Worker", "mxnet")];
    if version == "v1" {
        kinds.push(job("TFJob", "tfReplicaSpecs", "Worker", "tensorflow"));
        kinds.push(job("XGBoostJob", "xgbReplicaSpecs", "Master", "xgboost"));
        kinds.push(job("PyTorchJob", "pytorchReplicaSpecs", "Worker", "pytorch"));
        kinds.push(job("JAXJob", "jaxReplicaSpecs", "Worker", "jax"));
        kinds.push(job("PaddleJob", "paddleReplicaSpecs", "Worker", "paddle"));
    }
    let statuses = statuses().into_iter().enumerate();
    statuses
        .flat_map(|(n, status)| {
            let of_kind = move |mut job: Value| {
                let name = format!("{}-{n}", job["kind"].as_str().unwrap().to_lowercase());
                job["metadata"] = json!({"name": name});
                job["status"] = status.clone();
                (name, job)
            };
            kinds.clone().into_iter().map(of_kind)
        })
        .collect()
}

/// kubectl is strict by default: unknown fields are errors.
#[tokio::test]
async fn none_keeps_a_job_from_being_applied() {
    let cluster = ControlPlane::shared().await;
    cluster.install_crds().await;
    for version in ["v1", "v1beta1", "v1alpha2"] {
        for flags in [&[][..], &["--server-side"]] {
            let namespace = cluster.namespace("statuses").await;
            let mut refused = Vec::new();
            // The first time the jobs are created, the second time they are updated.
            for _ in 0..2 {
                for (name, job) in jobs(version) {
                    let apply = [&["apply", "--namespace", &namespace, "-f", "-"], flags].concat();
                    let applied = cluster.kubectl_with_input(&apply, &job.to_string()).await;
                    if applied.code != 0 {
                        refused.push(format!("{name} {}: {}", job["status"], applied.stderr));
                    }
                }
            }
            assert!(refused.is_empty(), "{version} {flags:?}\n{}", refused.join("\n"));
        }
    }
}
