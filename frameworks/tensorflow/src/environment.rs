//! `TF_CONFIG`, to the byte as the Go operator v1.8.1 writes it (`tensorflow.go`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::EnvVar;
use serde::Serialize;
use training_job::{Replica, Role, Topology};

use crate::job::{PS, WORKER};

#[derive(Serialize)]
struct Config<'a> {
    cluster: BTreeMap<&'a str, Vec<String>>,
    task: Task<'a>,
    environment: &'static str,
}

/// What a replica is told that needs not know all others, so that workers may come and go.
#[derive(Serialize)]
struct SparseConfig<'a> {
    #[serde(rename = "sparseCluster")]
    cluster: SparseCluster,
    task: Task<'a>,
}

#[derive(Default, Serialize)]
struct SparseCluster {
    worker: BTreeMap<u32, String>,
    ps: Vec<String>,
}

#[derive(Serialize)]
struct Task<'a> {
    #[serde(rename = "type")]
    role: &'a str,
    index: u32,
}

/// The environment of a replica: none for a job of one, which TensorFlow would take for a cluster.
pub(crate) fn of(topology: &Topology<'_>, replica: &Replica<'_>, dynamic_workers: bool) -> Vec<EnvVar> {
    if topology.total() == 1 {
        return Vec::new();
    }
    let task = Task {
        role: &replica.role.lower,
        index: replica.index,
    };
    let config = if dynamic_workers {
        let cluster = sparse_cluster(topology, replica);
        serde_json::to_string(&SparseConfig { cluster, task })
    } else {
        let roles = topology.roles.iter();
        serde_json::to_string(&Config {
            cluster: roles
                .map(|r| (r.lower.as_str(), endpoints(topology, r)))
                .collect(),
            task,
            environment: "cloud",
        })
    };
    vec![EnvVar {
        name: "TF_CONFIG".to_owned(),
        // Strings and numbers always serialize.
        value: Some(config.unwrap_or_default()),
        value_from: None,
    }]
}

/// A worker knows all parameter servers and itself, a parameter server only itself.
fn sparse_cluster(topology: &Topology<'_>, replica: &Replica<'_>) -> SparseCluster {
    let own = endpoint(topology, replica.role, replica.index);
    match replica.role.name() {
        PS => SparseCluster {
            ps: vec![own],
            ..SparseCluster::default()
        },
        WORKER => SparseCluster {
            worker: BTreeMap::from([(replica.index, own)]),
            ps: topology
                .role(PS)
                .map(|ps| endpoints(topology, ps))
                .unwrap_or_default(),
        },
        _ => SparseCluster::default(),
    }
}

fn endpoints(topology: &Topology<'_>, role: &Role<'_>) -> Vec<String> {
    role.all().map(|r| endpoint(topology, role, r.index)).collect()
}

fn endpoint(topology: &Topology<'_>, role: &Role<'_>, index: u32) -> String {
    let (host, namespace, port) = (topology.host(role, index), topology.namespace, role.port);
    format!("{host}.{namespace}.svc:{port}")
}

/// The port of a replica on a machine that it shares with others: TensorFlow listens at all addresses,
/// so they would get each other's calls. Below the ports that systems give to who asks for any.
#[cfg(feature = "local")]
fn local_port(address: std::net::Ipv4Addr) -> u32 {
    10_000 + address.to_bits() % 20_000
}

/// The value of `TF_CONFIG` with a port of its own for each address; none if it has no addresses.
#[cfg(feature = "local")]
pub(crate) fn with_local_ports(config: &str) -> Option<String> {
    let mut parts = config.split('"').map(str::to_owned).collect::<Vec<_>>();
    let mut found = false;
    for part in &mut parts {
        let address = part.parse::<std::net::SocketAddrV4>();
        if let Ok(address) = address {
            *part = format!("{}:{}", address.ip(), local_port(*address.ip()));
            found = true;
        }
    }
    found.then(|| parts.join("\""))
}

#[cfg(all(test, feature = "local"))]
mod tests {
    use super::with_local_ports;

    #[test]
    fn each_address_has_a_port_of_its_own() {
        let config = r#"{"cluster":{"worker":["127.64.0.2:2222","127.64.0.3:2222"]},"task":{"type":"worker","index":0}}"#;
        let local = r#"{"cluster":{"worker":["127.64.0.2:10738","127.64.0.3:10739"]},"task":{"type":"worker","index":0}}"#;
        assert_eq!(with_local_ports(config).as_deref(), Some(local));
        assert_eq!(with_local_ports(r#"{"task":{"type":"worker"}}"#), None);
    }
}
