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
use kube_schema::names::MAX_LABEL_CHARS;

use super::api::{ApiError, PodApi};
use super::config::NODE_AGENT;
use super::devices::Devices;
use super::env_values::HOST_IP;
use super::resources::Machine;

/// The interval of updates. A node controller treats a node as dead after 40 s without an update.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);
/// The timeout of the node's removal.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(3);

/// The reason that a node's name cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeNameError {
    /// The Node object belongs to another machine, or not to an agent.
    #[error("the node {name} belongs to {owner}; choose another name")]
    Taken {
        /// The node's name.
        name: String,
        /// A description of the owner.
        owner: String,
    },
    /// The API did not respond, or rejected the request.
    #[error(transparent)]
    Api(#[from] kube::Error),
}

/// Checks that a name is free for a [`Node`](super::Node) on this machine. It is taken if another machine has a Node
/// object with this name, because the pods would then be run twice.
///
/// # Errors
/// [`NodeNameError::Taken`], or the request to the API server failed.
pub async fn check_node_name(client: &Client, name: &str) -> Result<(), NodeNameError> {
    let Some(found) = Api::<Node>::all(client.clone()).get_opt(name).await? else {
        return Ok(());
    };
    let owner = match found.labels().get(NODE_AGENT) {
        Some(machine) if *machine == machine_name() => return Ok(()),
        Some(machine) => format!("the node agent on {machine}"),
        None => "no node agent".to_owned(),
    };
    Err(NodeNameError::Taken {
        name: name.to_owned(),
        owner,
    })
}

/// Returns a name for the node of this machine: `local-` and the machine's name. It differs from the names of
/// kubelets and of other machines.
#[must_use]
pub fn default_node_name() -> String {
    let machine = machine_name().to_lowercase().replace('_', "-");
    let name: String = format!("local-{machine}").chars().take(MAX_LABEL_CHARS).collect();
    name.trim_end_matches(['-', '.']).to_owned()
}

/// Returns this machine's name, with characters replaced that the value of a label must not contain.
fn machine_name() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    let allowed = |c: char| c.is_ascii_alphanumeric();
    let label: String = name
        .chars()
        .map(|c| if allowed(c) || ".-_".contains(c) { c } else { '-' })
        .take(MAX_LABEL_CHARS)
        .collect();
    label.trim_matches(|c| !allowed(c)).to_owned()
}

/// Removes the node, unless the API does not respond.
pub(super) async fn remove(api: &dyn PodApi, name: &str) {
    match tokio::time::timeout(REMOVE_TIMEOUT, api.unregister(name)).await {
        Ok(Ok(()) | Err(ApiError::Gone)) => {}
        Ok(Err(error)) => tracing::warn!(node = name, %error, "the node is not removed"),
        Err(_) => tracing::warn!(node = name, "the node is not removed: no response from the API"),
    }
}

/// Creates the node and keeps it ready without end. Logs one warning if the API has no nodes or forbids them.
pub(super) async fn keep_registered(
    api: Arc<dyn PodApi>,
    name: String,
    devices: Option<BTreeMap<String, Devices>>,
) {
    let since = Timestamp::now();
    let mut warned = false;
    loop {
        match api
            .register(&node(&name, devices.as_ref(), since, Timestamp::now()))
            .await
        {
            Ok(()) => warned = false,
            Err(error) if !warned => {
                warned = true;
                tracing::warn!(node = name, %error, "the node is not registered");
            }
            Err(_) => {}
        }
        tokio::time::sleep(HEARTBEAT_INTERVAL).await;
    }
}

fn node(name: &str, devices: Option<&BTreeMap<String, Devices>>, since: Timestamp, now: Timestamp) -> Node {
    let machine = Machine::this();
    let mut capacity: BTreeMap<String, Quantity> = [
        ("cpu", format!("{:.0}", machine.cpus)),
        ("memory", format!("{:.0}", machine.memory_bytes)),
        ("pods", "10000".to_owned()),
    ]
    .map(|(resource, amount)| (resource.to_owned(), Quantity(amount)))
    .into();
    let devices = devices.into_iter().flatten();
    let devices =
        devices.map(|(resource, devices)| (resource.clone(), Quantity(devices.ids.len().to_string())));
    capacity.extend(devices);
    // The addresses contain no host name, because clients would prefer it and it may not resolve.
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
    // Pods that belong to no training job do not expect to run as a process of this machine's user.
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
