//! Moves pods through their phases.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, PostParams};
use training_job_testbed::cluster::{ControlPlane, wait_for_all};

use super::objects::pod;

fn phase(pod: &Pod) -> &str {
    pod.status
        .as_ref()
        .and_then(|s| s.phase.as_deref())
        .unwrap_or_default()
}

/// Returns the restarts and the exit code of a container.
fn container(pod: &Pod, name: &str) -> (i32, Option<i32>) {
    let mut all = pod
        .status
        .iter()
        .flat_map(|s| s.container_statuses.iter().flatten());
    let one = all.find(|c| c.name == name).unwrap();
    let ended = one.state.as_ref().and_then(|s| s.terminated.as_ref());
    (one.restart_count, ended.map(|t| t.exit_code))
}

#[tokio::test]
async fn a_pod_lives_and_fails() {
    let cluster = ControlPlane::shared().await;
    let namespace = cluster.namespace("kubelet").await;
    let kubelet = cluster.kubelet(&namespace).await;
    let api: Api<Pod> = Api::namespaced(cluster.client(), &namespace);
    for name in ["a", "b"] {
        api.create(&PostParams::default(), &pod(name)).await.unwrap();
        kubelet.bind(name, "node-1").await;
        kubelet.runs(name).await;
    }
    let run = wait_for_all(api.clone(), "", |all| {
        all.iter().filter(|p| phase(p) == "Running").count() == 2
    })
    .await;
    let started = run[0].status.as_ref().unwrap().start_time.clone();
    assert!(started.is_some());
    assert_eq!(run[0].spec.as_ref().unwrap().node_name.as_deref(), Some("node-1"));

    kubelet.restarts("a", "side", 3).await;
    kubelet.exits("a", "main", 137).await;
    let failed = cluster
        .wait::<Pod>(&namespace, "a", |p| p.is_some_and(|p| phase(p) == "Failed"))
        .await
        .unwrap();
    assert_eq!(container(&failed, "main"), (0, Some(137)));
    assert_eq!(container(&failed, "side"), (1, Some(0)));
    assert_eq!(failed.status.unwrap().start_time, started);
    kubelet.succeeds("b").await;
    assert_eq!(phase(&api.get("b").await.unwrap()), "Succeeded");
}

#[tokio::test]
async fn a_bound_pod_is_removed_when_its_kubelet_confirms() {
    let cluster = ControlPlane::shared().await;
    let namespace = cluster.namespace("deletion").await;
    let kubelet = cluster.kubelet(&namespace).await;
    let api: Api<Pod> = Api::namespaced(cluster.client(), &namespace);
    api.create(&PostParams::default(), &pod("a")).await.unwrap();
    kubelet.bind("a", "node-1").await;
    kubelet.runs("a").await;
    api.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(api.get("a").await.unwrap().metadata.deletion_timestamp.is_some());
    kubelet.finishes_deletion("a").await;
    cluster
        .wait::<Pod>(&namespace, "a", |found| found.is_none())
        .await;

    api.create(&PostParams::default(), &pod("b")).await.unwrap();
    kubelet.evicts("b").await;
    let evicted = api.get("b").await.unwrap().status.unwrap();
    assert_eq!(evicted.reason.as_deref(), Some("Evicted"));
}
