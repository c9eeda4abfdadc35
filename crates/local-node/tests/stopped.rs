//! A pod that was stopped from outside is distinguished from one that failed by itself.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use kube_memory::Cluster;
use local_node::{Node, NodeConfig, NodeEvent, PodPhase};
use serde_json::json;
use tokio::sync::mpsc;

struct Bench {
    pods: Api<Pod>,
    node: Node,
    events: mpsc::Receiver<NodeEvent>,
}

impl Bench {
    fn new() -> Self {
        let client: Client = Cluster::new().client("default");
        let (send, events) = mpsc::channel(100);
        Self {
            pods: Api::default_namespaced(client.clone()),
            node: Node::start(client, NodeConfig::default(), send).unwrap(),
            events,
        }
    }

    async fn create(&self, name: &str, script: &str) {
        let pod = serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {"restartPolicy": "Never",
                "containers": [{"name": "main", "image": "none", "command": ["sh", "-c", script]}]},
        }));
        self.pods
            .create(&PostParams::default(), &pod.unwrap())
            .await
            .unwrap();
    }

    /// Waits for a phase of a pod.
    async fn phase(&mut self, pod: &str, wanted: &str) -> PodPhase {
        let found = async {
            loop {
                match self.events.recv().await.unwrap() {
                    NodeEvent::Phase(phase) if phase.pod == pod && phase.phase == wanted => return phase,
                    _ => {}
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(30), found)
            .await
            .unwrap_or_else(|_| panic!("{pod} is not {wanted}"))
    }
}

#[tokio::test]
async fn a_pod_that_is_deleted_while_it_runs_was_stopped() {
    let mut bench = Bench::new();
    bench.create("job-0", "exec sleep 1000").await;
    bench.phase("job-0", "Running").await;
    bench
        .pods
        .delete("job-0", &DeleteParams::default())
        .await
        .unwrap();
    assert_eq!(bench.phase("job-0", "Failed").await.to_string(), "Stopped");
}

#[tokio::test]
async fn a_pod_that_runs_when_its_node_shuts_down_was_stopped() {
    let mut bench = Bench::new();
    bench.create("job-0", "exec sleep 1000").await;
    bench.phase("job-0", "Running").await;
    let Bench {
        pods,
        node,
        mut events,
    } = bench;
    node.shutdown(Duration::from_secs(10)).await;
    let mut last = None;
    while let Some(event) = events.recv().await {
        if let NodeEvent::Phase(phase) = event {
            last = Some(phase.to_string());
        }
    }
    let why = "Pod was terminated in response to imminent node shutdown.";
    assert_eq!(last, Some(format!("Stopped: {why}")));
    let stored = pods.get("job-0").await.unwrap();
    assert!(PodPhase::from_pod(&stored, false).stopped);
    assert_eq!(stored.status.unwrap().reason.as_deref(), Some("Terminated"));
}

#[test]
fn a_pod_that_is_gone_before_it_has_ended_was_stopped() {
    for (phase, gone, stopped) in [
        ("Pending", true, true),
        ("Running", true, true),
        ("Running", false, false),
        ("Succeeded", true, false),
        ("Failed", true, false),
    ] {
        let pod = json!({"metadata": {"name": "job-0"}, "status": {"phase": phase}});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        assert_eq!(PodPhase::from_pod(&pod, gone).stopped, stopped, "{phase} {gone}");
    }
}

#[tokio::test]
async fn a_pod_that_ends_by_a_signal_of_its_own_has_failed() {
    let mut bench = Bench::new();
    bench.create("job-0", "kill -TERM $$$$").await;
    let phase = bench.phase("job-0", "Failed").await;
    assert_eq!(phase.to_string(), "Failed with exit code 143");
}
