//! The node without an operator, with pods that run a shell.

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use training_job_testbed::cluster::{Background, ControlPlane, Signal};
use training_operator_testing::cluster_training::trial::{node, shared};
use training_operator_testing::processes;

async fn create(plane: &ControlPlane, namespace: &str, name: &str, script: &str) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "containers": [
            {"name": "main", "image": "none", "command": ["sh", "-c", script]},
        ]},
    });
    plane.create(namespace, &pod).await;
}

fn phase(pod: Option<&Pod>) -> Option<&str> {
    pod?.status.as_ref()?.phase.as_deref()
}

async fn refused(node: Background) -> String {
    assert_eq!(node.exit_code().await, 2, "{}", node.text());
    node.text()
}

#[tokio::test]
async fn a_node_has_its_name_alone() {
    let plane = shared().await;
    let first = plane.spawn(node(plane, "local-one", "default"));
    first.wait_for_line("node local-one of https://").await;
    let second = refused(plane.spawn(node(plane, "local-one", "default"))).await;
    assert!(second.contains("node local-one of https://"), "{second}");
    assert!(
        second.contains(" already runs on this machine; choose another --name"),
        "{second}"
    );

    for (name, labels, owner) in [
        ("a-kubelet", json!({}), "belongs to no node agent"),
        (
            "far",
            json!({"training.kubeflow.org/node-agent": "far"}),
            "belongs to the node agent on far",
        ),
    ] {
        let node_object =
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
        plane
            .kubectl_with_input(&["create", "-f", "-"], &node_object.to_string())
            .await
            .success();
        let text = refused(plane.spawn(node(plane, name, "default"))).await;
        assert!(
            text.contains(&format!(
                "the node {name} {owner}; choose another name with --name"
            )),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_node_beside_a_scheduler_runs_only_its_own_pods() {
    let plane = shared().await;
    let namespace = plane.namespace("given").await;
    let agent = plane.spawn(node(plane, "local-given", &namespace).args(["--no-bind"]));
    create(plane, &namespace, "given", "echo got it").await;
    create(plane, &namespace, "other", "echo never").await;
    plane.kubelet(&namespace).await.bind("given", "local-given").await;
    plane
        .wait::<Pod>(&namespace, "given", |pod| phase(pod) == Some("Succeeded"))
        .await;
    agent.wait_for_line("given | got it").await;
    agent.signal(Signal::TERM);
    assert_eq!(agent.exit_code().await, 0, "{}", agent.text());
    let other = plane.wait::<Pod>(&namespace, "other", |pod| pod.is_some()).await;
    assert_eq!(phase(other.as_ref()), Some("Pending"));
    assert!(!agent.text().contains("other"), "{}", agent.text());
}

#[tokio::test]
async fn a_node_that_ends_ends_its_pods_and_a_pod_that_is_deleted_has_its_grace() {
    let plane = shared().await;
    let namespace = plane.namespace("ends").await;
    let agent = plane.spawn(node(plane, "local-ends", &namespace));
    let polite = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done";
    create(plane, &namespace, "deleted", polite).await;
    create(plane, &namespace, "left", &polite.replace("exit 0", "exit 7")).await;
    agent.wait_for_lines(" | up", 2).await;
    let delete = ["--namespace", &namespace, "delete", "pod", "deleted"];
    plane.kubectl(&delete).await.success();
    agent.wait_for_line("deleted | bye").await;

    let pid = agent.pid().as_raw_nonzero().get().try_into().unwrap();
    let mut running = processes::of_pods(pid);
    running.dedup();
    assert_eq!(running, ["left"]);
    agent.signal(Signal::INT);
    assert_eq!(agent.exit_code().await, 0, "{}", agent.text());
    let left = processes::of_run(pid);
    assert!(left.is_empty(), "{left:?}");
    let status = plane.wait::<Pod>(&namespace, "left", |pod| phase(pod) == Some("Failed"));
    let status = status.await.unwrap().status.unwrap();
    assert_eq!(status.reason.as_deref(), Some("Terminated"));
    let ended = status.container_statuses.unwrap()[0].state.clone().unwrap();
    assert_eq!(ended.terminated.unwrap().exit_code, 7);
}
