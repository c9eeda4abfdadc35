//! `TF_CONFIG` in the format of 2017.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::EnvVar;
use serde::Serialize;
use training_job::api::variable;
use training_job::{Replica, Role, Topology};

#[derive(Serialize)]
struct Task<'a> {
    #[serde(rename = "type")]
    role: &'a str,
    index: u32,
}

/// Returns the environment of a replica. TensorFlow's estimators use the cluster only with `environment: cloud`.
pub(super) fn variables(topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
    let cluster = topology.shared_text("TF_CONFIG", || {
        let roles = topology.roles.iter().filter(|role| role.replicas > 0);
        let all: BTreeMap<_, _> = roles.map(|role| (role.slug.as_str(), endpoints(role))).collect();
        json(&all)
    });
    let task = json(&Task {
        role: &replica.role.slug,
        index: replica.index,
    });
    let config = [
        "{\"cluster\":",
        &*cluster,
        ",\"task\":",
        &task,
        ",\"environment\":\"cloud\"}",
    ];
    vec![variable("TF_CONFIG", config.concat())]
}

fn endpoints(role: &Role<'_>) -> Vec<String> {
    let endpoint = |replica: Replica<'_>| format!("{}:{}", replica.host(), role.port);
    role.all().map(endpoint).collect()
}

/// Returns a value as JSON. Strings and numbers always serialize.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
