//! The environment variables of an MXJob, `MX_CONFIG` and `DMLC_*`, byte for byte as the Go operator v1.8.1 writes
//! them (`mxnet.go`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::EnvVar;
use serde::Serialize;
use training_job::{Replica, Role, Topology};

use crate::MXJobSpec;

/// The annotation of a tuner server's template with the key under which the server registers.
pub(crate) const TUNER_SERVER_KEY: &str = "tuner-server-key";

/// The part of `MX_CONFIG` that all replicas share.
#[derive(Serialize)]
struct Cluster<'a> {
    cluster: BTreeMap<&'a str, Vec<Address>>,
    labels: BTreeMap<&'a str, &'a str>,
}

#[derive(Serialize)]
struct Address {
    url: String,
    port: i32,
}

#[derive(Serialize)]
struct Task<'a> {
    #[serde(rename = "type")]
    role: &'a str,
    index: u32,
}

/// Returns the environment of a replica.
pub(crate) fn variables(spec: &MXJobSpec, topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
    let scheduler = topology.role("Scheduler");
    let mut environment = vec![
        variable("MX_CONFIG", config(spec, topology, replica)),
        variable("DMLC_PS_ROOT_PORT", scheduler.map_or(0, |s| s.port).to_string()),
        variable(
            "DMLC_PS_ROOT_URI",
            scheduler.map(|s| s.host(0)).unwrap_or_default(),
        ),
        variable("DMLC_NUM_SERVER", topology.replicas("Server").to_string()),
        variable("DMLC_NUM_WORKER", topology.replicas("Worker").to_string()),
        variable("DMLC_ROLE", replica.role.slug.clone()),
        variable("DMLC_USE_KUBERNETES", "1".to_owned()),
    ];
    if replica.role.name() == "Worker" {
        environment.push(variable("DMLC_WORKER_ID", replica.index.to_string()));
    }
    environment
}

/// Returns a variable. Like the Go operator, it omits an empty value.
fn variable(name: &str, value: String) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: Some(value).filter(|v| !v.is_empty()),
        value_from: None,
    }
}

/// Returns `MX_CONFIG`: one object with the cluster, followed by the replica's own task.
fn config(spec: &MXJobSpec, topology: &Topology<'_>, replica: &Replica<'_>) -> String {
    let cluster = topology.shared_text("MX_CONFIG", || escape_as_go(json(&cluster(spec, topology))));
    let task = json(&Task {
        role: &replica.role.slug,
        index: replica.index,
    });
    let open = cluster.strip_suffix('}').unwrap_or_default();
    [open, ",\"task\":", &task, "}"].concat()
}

fn cluster<'a>(spec: &'a MXJobSpec, topology: &'a Topology<'_>) -> Cluster<'a> {
    let addresses = |role: &Role<'_>| {
        role.all()
            .map(|r| Address {
                url: r.host(),
                port: role.port,
            })
            .collect()
    };
    let roles = || topology.roles.iter();
    Cluster {
        cluster: roles().map(|r| (r.slug.as_str(), addresses(r))).collect(),
        labels: roles()
            .map(|r| (r.slug.as_str(), tuner_server_key(spec, r)))
            .collect(),
    }
}

/// Returns a value as JSON. Strings and numbers always serialize.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Returns the key of a tuner server. Manifests of the stand-alone operator have it in the replica spec's `label`.
fn tuner_server_key<'a>(spec: &'a MXJobSpec, role: &'a Role<'_>) -> &'a str {
    let of_template = role.annotation(TUNER_SERVER_KEY);
    of_template
        .or_else(|| spec.label(role.name()))
        .unwrap_or_default()
}

/// The characters that Go's JSON encoder escapes and serde's does not.
const ESCAPED_BY_GO: [char; 5] = ['<', '>', '&', '\u{2028}', '\u{2029}'];

fn escape_as_go(json: String) -> String {
    if !json.contains(ESCAPED_BY_GO) {
        return json;
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            c if ESCAPED_BY_GO.contains(&c) => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_escaped_as_by_go() {
        assert_eq!(
            escape_as_go(r#"{"k":"<a&b>é"}"#.to_owned()),
            r#"{"k":"\u003ca\u0026b\u003eé"}"#
        );
        assert_eq!(escape_as_go("\u{2028}".to_owned()), r"\u2028");
        assert_eq!(escape_as_go("é".to_owned()), "é");
    }
}
