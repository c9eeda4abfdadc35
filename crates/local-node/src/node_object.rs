//! The Node object of the agent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo, Taint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::{Api, Client, ResourceExt};

use super::api::{ApiError, PodApi};
use super::config::NODE_AGENT;
use super::env_values::HOST_IP;
use super::resources::Machine;

/// A node controller takes a node for dead that is silent for 40 s.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How long the API may take to remove the node.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(3);

/// Why a node's name cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeNameError {
    /// The node is another machine's, or not an agent's at all.
    #[error("the node {name} is {owner}; choose another name")]
    Taken {
        /// The node's name.
        name: String,
        /// Whose it is, in words.
        owner: String,
    },
    /// The API did not answer, or refused.
    #[error(transparent)]
    Api(#[from] kube::Error),
}

/// Checks that a name is free for a [`Node`](super::Node) on this machine: that there is no Node object of another
/// machine with it, whose pods would be run twice.
///
/// # Errors
/// [`NodeNameError::Taken`], or the API server cannot be asked.
pub async fn check_node_name(client: &Client, name: &str) -> Result<(), NodeNameError> {
    let Some(found) = Api::<Node>::all(client.clone()).get_opt(name).await? else {
        return Ok(());
    };
    let owner = match found.labels().get(NODE_AGENT) {
        Some(machine) if *machine == machine_name() => return Ok(()),
        Some(machine) => format!("that of the node agent on {machine}"),
        None => "no node agent's".to_owned(),
    };
    Err(NodeNameError::Taken {
        name: name.to_owned(),
        owner,
    })
}

/// A name for the node of this machine: `local-` and the machine's name, so that it is no kubelet's and no other machine's.
#[must_use]
pub fn default_node_name() -> String {
    let machine = machine_name().to_lowercase().replace('_', "-");
    let name: String = format!("local-{machine}").chars().take(63).collect();
    name.trim_end_matches(['-', '.']).to_owned()
}

/// This machine's name, as far as it can be the value of a label.
fn machine_name() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    let allowed = |c: char| c.is_ascii_alphanumeric();
    let label: String = name
        .chars()
        .map(|c| if allowed(c) || ".-_".contains(c) { c } else { '-' })
        .take(63)
        .collect();
    label.trim_matches(|c| !allowed(c)).to_owned()
}

/// Removes the node, unless the API does not answer.
pub(super) async fn remove(api: &dyn PodApi, name: &str) {
    match tokio::time::timeout(REMOVE_TIMEOUT, api.unregister(name)).await {
        Ok(Ok(()) | Err(ApiError::Gone)) => {}
        Ok(Err(error)) => tracing::warn!(node = name, %error, "the node is not removed"),
        Err(_) => tracing::warn!(node = name, "the node is not removed: no answer from the API"),
    }
}

/// Creates the node and keeps it ready, for ever. An API without nodes, or one that forbids them, is warned of once.
pub(super) async fn keep_registered(api: Arc<dyn PodApi>, name: String) {
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
    let labels = [
        ("kubernetes.io/hostname", name.to_owned()),
        (NODE_AGENT, machine_name()),
    ];
    // A process of this machine's user is not what a pod of no training job expects.
    let taint = Taint {
        key: NODE_AGENT.to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Taint::default()
    };
    Node {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value)).into()),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            taints: Some(vec![taint]),
            ..NodeSpec::default()
        }),
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
    }
}
