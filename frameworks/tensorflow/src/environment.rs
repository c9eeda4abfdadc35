//! `TF_CONFIG`, to the byte as the Go operator v1.8.1 writes it (`tensorflow.go`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::EnvVar;
use serde::Serialize;
use training_job::api::variable;
use training_job::{Replica, Role, Topology};

pub(crate) const PS: &str = "PS";
pub(crate) const WORKER: &str = "Worker";

#[derive(Serialize)]
struct Config<'a> {
    cluster: Cluster<'a>,
    task: Task<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Cluster<'a> {
    /// All endpoints by role.
    Whole(BTreeMap<&'a str, Vec<String>>),
    /// What a replica must know if workers may come and go.
    Sparse {
        worker: BTreeMap<u32, String>,
        ps: Vec<String>,
    },
}

#[derive(Serialize)]
struct Task<'a> {
    #[serde(rename = "type")]
    role: &'a str,
    index: u32,
}

/// The environment of a replica: none for a job of one, which TensorFlow would take for a cluster.
pub(crate) fn variables(
    topology: &Topology<'_>,
    replica: &Replica<'_>,
    dynamic_workers: bool,
) -> Vec<EnvVar> {
    if topology.total() == 1 {
        return Vec::new();
    }
    let roles = topology.roles.iter();
    let config = Config {
        cluster: match dynamic_workers {
            true => sparse(topology, replica),
            false => Cluster::Whole(roles.map(|r| (r.slug.as_str(), endpoints(topology, r))).collect()),
        },
        task: Task {
            role: &replica.role.slug,
            index: replica.index,
        },
        environment: (!dynamic_workers).then_some("cloud"),
    };
    // Strings and numbers always serialize.
    vec![variable(
        "TF_CONFIG",
        serde_json::to_string(&config).unwrap_or_default(),
    )]
}

/// A worker knows all parameter servers and itself, a parameter server only itself.
fn sparse<'a>(topology: &Topology<'_>, replica: &Replica<'_>) -> Cluster<'a> {
    let own = || endpoint(topology, replica.role, replica.index);
    let servers = || topology.role(PS).map(|ps| endpoints(topology, ps));
    let (worker, ps) = match replica.role.name() {
        PS => (None, vec![own()]),
        WORKER => (Some((replica.index, own())), servers().unwrap_or_default()),
        _ => (None, Vec::new()),
    };
    Cluster::Sparse {
        worker: worker.into_iter().collect(),
        ps,
    }
}

fn endpoints(topology: &Topology<'_>, role: &Role<'_>) -> Vec<String> {
    role.all().map(|r| endpoint(topology, role, r.index)).collect()
}

fn endpoint(topology: &Topology<'_>, role: &Role<'_>, index: u32) -> String {
    let (host, namespace, port) = (role.host(index), topology.namespace, role.port);
    format!("{host}.{namespace}.svc:{port}")
}
