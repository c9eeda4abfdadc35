//! A node whose disk is full.

use k8s_openapi::api::core::v1::Node;
use kube::api::Api;
use serde_json::json;
use training_job_testbed::cluster::wait;

use crate::cluster::cluster;
use crate::job::{RUN, TRAINS, pod, script, small};
use crate::stage::Stage;

async fn has_pressure(pressure: &str) {
    let api: Api<Node> = Api::all(cluster().await.client());
    wait(api, "node-2", |node: Option<&Node>| {
        let conditions = node.and_then(|node| node.status.as_ref()?.conditions.as_ref());
        let mut all = conditions.into_iter().flatten();
        all.any(|condition| condition.type_ == "DiskPressure" && condition.status == pressure)
    })
    .await;
}

/// The folder of a node's pods is a disk of its own, and small. The first attempt fills it, the second finds a file of
/// the first on the other node.
#[tokio::test]
async fn the_pod_that_fills_a_disk_is_evicted_and_the_job_goes_on() {
    let stage = Stage::new("disk").await;
    let mut job = small("disk");
    let folder = stage.plane.directory().join("disk");
    let fill = "[ -e /mark/file ] || { touch /mark/file; dd if=/dev/zero of=/scratch/file bs=1M; }";
    script(&mut job, "Worker", &format!("{fill}; {RUN}"));
    job["spec"]["mxReplicaSpecs"]["Worker"]["replicas"] = json!(1);
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
    let status = stage.restarted(&job, 1).await;
    let failure = &status["failure"];
    assert_eq!(failure["summary"], "worker-0: TerminationByKubelet", "{status:#}");
    assert_eq!(failure["node"], "node-2", "{status:#}");
    assert!(
        failure["message"].as_str().unwrap().contains("ephemeral-storage"),
        "{status:#}"
    );
    has_pressure("False").await;
    stage.prints("disk-worker-0", TRAINS, None).await;
    stage.condition(&job, "Running").await;
}
