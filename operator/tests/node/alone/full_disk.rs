//! A node whose disk is full.

use k8s_openapi::api::core::v1::Node;
use kube::api::Api;
use serde_json::{Value, json};
use training_job_testbed::cluster::wait;

use crate::cluster::cluster;
use crate::job::{RUN, TRAINS, each_pod, pod, script, small};
use crate::stage::{Stage, is};

async fn has_pressure(pressure: &str) {
    let api: Api<Node> = Api::all(cluster().await.client());
    wait(api, "node-2", |node: Option<&Node>| {
        let conditions = node.and_then(|node| node.status.as_ref()?.conditions.as_ref());
        let mut all = conditions.into_iter().flatten();
        all.any(|condition| condition.type_ == "DiskPressure" && condition.status == pressure)
    })
    .await;
}

/// The folder of a node's pods is a disk of its own, and small. The first attempt fills it and leaves a mark, with which
/// later attempts do not.
#[tokio::test]
async fn a_pod_that_fills_a_disk_is_evicted_and_the_job_continues() {
    let stage = Stage::new("disk").await;
    let mut job = small("disk");
    let folder = stage.plane.directory().join("disk");
    let fill = "[ -e /mark/file ] || { touch /mark/file; dd if=/dev/zero of=/scratch/file bs=1M; }";
    script(&mut job, "Worker", &format!("{fill}; {RUN}"));
    job["spec"]["mxReplicaSpecs"]["Worker"]["replicas"] = json!(1);
    // The kubelet evicts another pod first if it has not yet measured what the worker wrote.
    each_pod(&mut job, |pod| {
        pod["nodeSelector"] = json!({"kubernetes.io/hostname": "node-1"})
    });
    let worker = pod(&mut job, "Worker");
    worker["nodeSelector"] = json!({"kubernetes.io/hostname": "node-2"});
    worker["containers"][0]["volumeMounts"] = json!([
        {"name": "scratch", "mountPath": "/scratch"}, {"name": "mark", "mountPath": "/mark"},
    ]);
    worker["volumes"] = json!([
        {"name": "scratch", "emptyDir": {}},
        {"name": "mark", "hostPath": {"path": folder, "type": "DirectoryOrCreate"}},
    ]);
    stage.create(&job).await;
    has_pressure("True").await;
    // The scheduler may choose the same node again, whose kubelet rejects the pods. The job must survive that time.
    let status = stage.until(&job, |status| status["failure"] != Value::Null).await;
    let first = status["failureHistory"].as_array().and_then(|all| all.first());
    let failure = first.unwrap_or(&status["failure"]);
    assert_eq!(failure["summary"], "worker-0: TerminationByKubelet", "{status:#}");
    assert_eq!(failure["node"], "node-2", "{status:#}");
    assert!(
        failure["message"].as_str().unwrap().contains("ephemeral-storage"),
        "{status:#}"
    );
    has_pressure("False").await;
    let runs = |status: &Value| is(status, "Running") || is(status, "Failed");
    let status = stage.until(&job, runs).await;
    assert!(is(&status, "Running"), "{status:#}");
    stage.prints("disk-worker-0", TRAINS, None).await;
    stage.kubectl(&["delete", "mxjob", "disk"]).await;
}
