//! Aggregated discovery: the resources of all groups in one response, from the lists of each version.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::request::accept::{Accepted, JSON};
use crate::server::Server;

pub(super) const MEDIA_TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Returns true if a client prefers this form to the lists of each version.
pub(super) fn is_preferred(accepted: &Accepted) -> bool {
    let preferred = accepted.first(&[JSON], |_, conversion| {
        match (conversion.kind, conversion.group, conversion.version) {
            ("", ..) => Some(false),
            ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => Some(true),
            _ => None,
        }
    });
    preferred == Some(true)
}

impl Server {
    /// Returns the resources of the versions of groups.
    pub(super) fn aggregated(&self, groups: &BTreeMap<String, Vec<String>>) -> Value {
        let items = groups.iter().map(|(group, versions)| {
            let versions = versions.iter().filter_map(|version| {
                let list = self.resources(group, version)?;
                let resources = resources(group, version, list["resources"].as_array()?);
                Some(json!({"version": version, "resources": resources, "freshness": "Current"}))
            });
            let metadata = match group.as_str() {
                "" => json!({}),
                name => json!({"name": name}),
            };
            json!({"metadata": metadata, "versions": versions.collect::<Vec<_>>()})
        });
        json!({
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": items.collect::<Vec<_>>(),
        })
    }
}

/// Returns the resources of a version, each with its subresources.
fn resources(group: &str, version: &str, list: &[Value]) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    for entry in list {
        let name = entry["name"].as_str().unwrap_or_default();
        let kind = json!({
            "group": entry["group"].as_str().unwrap_or(group),
            "version": entry["version"].as_str().unwrap_or(version),
            "kind": entry["kind"],
        });
        if let Some((resource, subresource)) = name.split_once('/') {
            let value = json!({"subresource": subresource, "responseKind": kind, "verbs": entry["verbs"]});
            let whole = found.iter_mut().find(|whole| whole["resource"] == resource);
            match whole.map(|whole| &mut whole["subresources"]) {
                Some(Value::Array(subresources)) => subresources.push(value),
                Some(none) => *none = json!([value]),
                None => {}
            }
            continue;
        }
        let scope = match entry["namespaced"] == true {
            true => "Namespaced",
            false => "Cluster",
        };
        let mut value = json!({
            "resource": name,
            "responseKind": kind,
            "scope": scope,
            "singularResource": entry["singularName"],
            "verbs": entry["verbs"],
        });
        for names in ["shortNames", "categories"] {
            if entry[names].as_array().is_some_and(|names| !names.is_empty()) {
                value[names] = entry[names].clone();
            }
        }
        found.push(value);
    }
    found
}
