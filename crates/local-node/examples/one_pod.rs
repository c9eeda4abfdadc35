//! Runs one pod as a process of this machine, without a cluster, and watches it to its end:
//!
//! ```sh
//! cargo run --package local-node --example one_pod
//! ```

use std::error::Error;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use kube_memory::Cluster;
use local_node::{Node, NodeConfig, NodeEvent};
use serde_json::json;
use tokio::sync::mpsc;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // An API server in memory. With `Client::try_default()` instead, the node runs pods of your cluster.
    let client = Cluster::new().client("default");
    let (send, mut events) = mpsc::channel(1_000);
    let node = Node::start(client.clone(), NodeConfig::default(), send)?;

    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "demo"},
        "spec": {
            "restartPolicy": "OnFailure",
            "containers": [{
                "name": "main",
                "image": "none: the command runs on this machine",
                "command": ["sh", "-c", "for i in 1 2 3; do echo \"$GREETING $i\"; sleep 0.2; done"],
                "env": [{"name": "WHERE", "value": "here"}, {"name": "GREETING", "value": "hello from $(WHERE)"}],
            }],
        },
    }))?;
    let pods: Api<Pod> = Api::default_namespaced(client);
    pods.create(&PostParams::default(), &pod).await?;

    while let Some(event) = events.recv().await {
        match event {
            NodeEvent::Prepared(prepared) => {
                for difference in prepared.differences {
                    println!("{} ? {difference}", prepared.pod);
                }
            }
            NodeEvent::Log(line) => println!("{} | {}", line.pod, line.text),
            NodeEvent::Phase(phase) => {
                println!("{} * {phase}", phase.pod);
                if matches!(phase.phase.as_str(), "Succeeded" | "Failed") {
                    break;
                }
            }
            _ => {}
        }
    }
    node.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
