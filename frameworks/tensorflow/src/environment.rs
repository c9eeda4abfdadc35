//! `TF_CONFIG`, byte for byte as the Go operator v1.8.1 writes it (`tensorflow.go`).

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::EnvVar;
use serde::Serialize;
use training_job::api::variable;
use training_job::{Replica, Role, Topology};

pub(crate) const PS: &str = "PS";
pub(crate) const WORKER: &str = "Worker";

/// The cluster as a replica of a job with dynamic workers sees it.
#[derive(Serialize)]
struct Sparse {
    worker: BTreeMap<u32, String>,
    ps: Vec<String>,
}

#[derive(Serialize)]
struct Task<'a> {
    #[serde(rename = "type")]
    role: &'a str,
    index: u32,
}

/// Returns the environment of a replica. It is empty for a job of one replica, because TensorFlow would treat that as
/// a cluster.
pub(crate) fn variables(
    topology: &Topology<'_>,
    replica: &Replica<'_>,
    dynamic_workers: bool,
) -> Vec<EnvVar> {
    if topology.total() == 1 {
        return Vec::new();
    }
    let (cluster, environment) = match dynamic_workers {
        true => (json(&sparse(topology, replica)).into(), ""),
        false => (whole(topology), ",\"environment\":\"cloud\""),
    };
    let task = json(&Task {
        role: &replica.role.slug,
        index: replica.index,
    });
    let config = ["{\"cluster\":", &*cluster, ",\"task\":", &task, environment, "}"].concat();
    vec![variable("TF_CONFIG", config)]
}

/// Returns a value as JSON. Strings and numbers always serialize.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Returns all endpoints by role. They are the same for all replicas.
fn whole(topology: &Topology<'_>) -> Arc<str> {
    topology.shared_text("TF_CONFIG", || {
        let roles = topology.roles.iter();
        let all: BTreeMap<_, _> = roles.map(|r| (r.slug.as_str(), endpoints(topology, r))).collect();
        json(&all)
    })
}

/// Returns the endpoints of one replica: a worker gets all parameter servers and itself, a parameter server only
/// itself.
fn sparse(topology: &Topology<'_>, replica: &Replica<'_>) -> Sparse {
    let own = || endpoint(topology, replica.role, replica.index);
    let servers = || topology.role(PS).map(|ps| endpoints(topology, ps));
    let (worker, ps) = match replica.role.name() {
        PS => (None, vec![own()]),
        WORKER => (Some((replica.index, own())), servers().unwrap_or_default()),
        _ => (None, Vec::new()),
    };
    Sparse {
        worker: worker.into_iter().collect(),
        ps,
    }
}

fn endpoints(topology: &Topology<'_>, role: &Role<'_>) -> Vec<String> {
    role.all().map(|r| endpoint(topology, role, r.index)).collect()
}

/// Returns `<host>.<namespace>.svc:<port>` in a plain job, as under the Go operator.
fn endpoint(topology: &Topology<'_>, role: &Role<'_>, index: u32) -> String {
    format!("{}.{}:{}", role.host(index), topology.domain(), role.port)
}
