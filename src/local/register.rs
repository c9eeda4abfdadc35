//! The Node object of the agent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeAddress, NodeCondition, NodeStatus, NodeSystemInfo};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use super::api::PodApi;
use super::resources::Machine;
use super::sources::HOST_IP;

/// A node controller takes a node for dead that is silent for 40 s.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Creates the node and keeps it ready, for ever. An API without nodes, or one that forbids them, is warned of once.
pub(super) async fn keep(api: Arc<dyn PodApi>, name: String) {
    let since = Timestamp::now();
    let mut warned = false;
    loop {
        match api.register(&node(&name, since, Timestamp::now())).await {
            Ok(()) => warned = false,
            Err(error) if !warned => {
                warned = true;
                tracing::warn!(node = name, %error, "the node is not registered");
            }
            Err(_) => {}
        }
        tokio::time::sleep(HEARTBEAT).await;
    }
}

fn node(name: &str, since: Timestamp, now: Timestamp) -> Node {
    let machine = Machine::this();
    let capacity: BTreeMap<String, Quantity> = [
        ("cpu", format!("{:.0}", machine.cpus)),
        ("memory", format!("{:.0}", machine.memory_bytes)),
        ("pods", "10000".to_owned()),
    ]
    .map(|(resource, amount)| (resource.to_owned(), Quantity(amount)))
    .into();
    // No host name among the addresses: clients would prefer it, and it need not resolve.
    let address = NodeAddress {
        type_: "InternalIP".to_owned(),
        address: HOST_IP.to_string(),
    };
    let ready = NodeCondition {
        type_: "Ready".to_owned(),
        status: "True".to_owned(),
        reason: Some("AgentReady".to_owned()),
        message: Some("the node agent runs pods as local processes".to_owned()),
        last_heartbeat_time: Some(Time(now)),
        last_transition_time: Some(Time(since)),
    };
    Node {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some([("kubernetes.io/hostname".to_owned(), name.to_owned())].into()),
            ..ObjectMeta::default()
        },
        status: Some(NodeStatus {
            addresses: Some(vec![address]),
            allocatable: Some(capacity.clone()),
            capacity: Some(capacity),
            conditions: Some(vec![ready]),
            node_info: Some(NodeSystemInfo {
                operating_system: "linux".to_owned(),
                architecture: std::env::consts::ARCH.to_owned(),
                kubelet_version: concat!("training-job-", env!("CARGO_PKG_VERSION")).to_owned(),
                ..NodeSystemInfo::default()
            }),
            ..NodeStatus::default()
        }),
        ..Node::default()
    }
}
