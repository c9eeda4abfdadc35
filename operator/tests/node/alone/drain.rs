//! `kubectl drain`.

use k8s_openapi::jiff::Timestamp;

use crate::example::{example, with_env};
use crate::stage::Stage;
use crate::times;

#[tokio::test]
async fn a_drained_training_continues_on_another_node() {
    let job = with_env(with_env(example("mxnet/train"), "STEPS", "3000"), "PAUSE", "0.2");
    let stage = Stage::new("drained").await;
    stage.create(&job).await;
    let (worker, _) = stage.prints("spirals-worker-0", "step=20", None).await;
    let node = stage
        .pods()
        .get("spirals-worker-1")
        .await
        .unwrap()
        .spec
        .unwrap()
        .node_name
        .unwrap();
    let from = Timestamp::now();
    // The operator's pods and CoreDNS are among those that move.
    let drain = [
        "drain",
        &node,
        "--ignore-daemonsets",
        "--delete-emptydir-data",
        "--force",
    ];
    stage.plane.kubectl(&drain).await.success();
    times::record("mxnet: drain -> node is empty", from, Timestamp::now());
    let (_, again) = stage.prints("spirals-worker-0", "kvstore", Some(&worker)).await;
    times::record("mxnet: drain -> trains again", from, again);
    let status = stage.restarted(&job, 1).await;
    assert_eq!(status["failure"]["reason"], "EvictionByEvictionAPI", "{status:#}");
    assert_eq!(status["failure"]["node"], node, "{status:#}");
    assert!(!stage.nodes().await.contains(&node));
    stage.event(&job, "MXJobRestarting").await;
    stage.plane.kubectl(&["uncordon", &node]).await.success();
    stage.kubectl(&["delete", "mxjob", "spirals"]).await;
    stage.has_pods(0).await;
}
