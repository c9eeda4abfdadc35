//! A node without power.

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::Timestamp;
use kube::api::Api;
use serde_json::{Value, json};
use training_job_testbed::cluster::wait;

use crate::cluster::{cluster, lab};
use crate::install::{NAMESPACE, rollout};
use crate::job::{TRAINS, each_pod, small};
use crate::stage::{Stage, is};
use crate::times;

async fn is_ready(ready: &str) {
    let api: Api<Node> = Api::all(cluster().await.client());
    wait(api, "node-2", |node: Option<&Node>| {
        let conditions = node.and_then(|node| node.status.as_ref()?.conditions.as_ref());
        let mut all = conditions.into_iter().flatten();
        all.any(|condition| condition.type_ == "Ready" && condition.status == ready)
    })
    .await;
}

/// Runs a job on the node, cuts its power, and waits for the operator's report.
async fn cut(stage: &Stage, job: &mut Value) -> Timestamp {
    each_pod(job, |pod| {
        pod["nodeSelector"] = json!({"kubernetes.io/hostname": "node-2"})
    });
    stage.create(job).await;
    stage.prints("cut-worker-0", TRAINS, None).await;
    stage.condition(job, "Running").await;
    lab(&["cut", "2"]).await;
    let from = Timestamp::now();
    is_ready("Unknown").await;
    times::record("power cut -> node is not ready", from, Timestamp::now());
    let message = stage.event(job, "PodsStuckTerminating").await;
    times::record("power cut -> event PodsStuckTerminating", from, Timestamp::now());
    assert!(
        message.contains("cut-scheduler-0") && message.contains("node-2"),
        "{message}"
    );
    // The restart is decided, and waits for the end of the old pods.
    let reported = |status: &Value| status["waitingReason"] == "PodsStuckTerminating";
    let status = stage.until(job, reported).await;
    assert!(is(&status, "Restarting"), "{status:#}");
    let columns = stage.columns(job).await;
    assert_eq!(columns["STATE"], "Restarting", "{columns:?}");
    assert_eq!(columns["REASON"], "PodsStuckTerminating", "{columns:?}");
    from
}

#[tokio::test]
async fn a_taint_releases_the_pods_of_a_dead_node() {
    let stage = Stage::new("cut").await;
    let mut job = small("cut");
    let from = cut(&stage, &mut job).await;
    let (before, tainted) = (stage.pods().get("cut-worker-0").await.unwrap(), Timestamp::now());
    let taint = [
        "taint",
        "node",
        "node-2",
        "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
    ];
    stage.plane.kubectl(&taint).await.success();
    let status = stage.restarted(&job, 1).await;
    times::record("out-of-service taint -> job restarts", tainted, Timestamp::now());
    assert_eq!(
        status["failure"]["reason"], "DeletionByTaintManager",
        "{status:#}"
    );
    assert_eq!(status["failure"]["node"], "node-2", "{status:#}");
    lab(&["power", "2"]).await;
    is_ready("True").await;
    let untaint = ["taint", "node", "node-2", "node.kubernetes.io/out-of-service-"];
    stage.plane.kubectl(&untaint).await.success();
    let (_, again) = stage.prints("cut-worker-0", TRAINS, Some(&before)).await;
    times::record(
        "power cut -> trains again, with a taint and power after it",
        from,
        again,
    );
}

#[tokio::test]
async fn a_flag_releases_the_pods_of_a_dead_node() {
    let stage = Stage::new("forced").await;
    let mut job = small("cut");
    let from = cut(&stage, &mut job).await;
    let before = stage.pods().get("cut-worker-0").await.unwrap();
    let add = json!([{
        "op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--force-delete-after=5s",
    }]);
    let deployment = ["deployment/training-operator", "--namespace", NAMESPACE];
    let patch = ["--type=json", "--patch", &add.to_string()];
    let patch = [&["patch"], &deployment[..], &patch].concat();
    stage.plane.kubectl(&patch).await.success();
    let status = stage.restarted(&job, 1).await;
    assert_eq!(
        status["failure"]["reason"], "DeletionByTaintManager",
        "{status:#}"
    );
    lab(&["power", "2"]).await;
    is_ready("True").await;
    let (_, again) = stage.prints("cut-worker-0", TRAINS, Some(&before)).await;
    times::record(
        "power cut -> trains again, with a flag and power after it",
        from,
        again,
    );
    let undo = [&["rollout", "undo"], &deployment[..]].concat();
    stage.plane.kubectl(&undo).await.success();
    rollout(stage.plane).await;
}
