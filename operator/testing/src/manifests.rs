//! Builds manifests/ with kustomize.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};
use training_job_testbed::cluster::{ControlPlane, repository};

/// Returns the objects of an overlay with these components for this namespace, built by a separate kustomization as
/// users do.
pub async fn build(
    cluster: &ControlPlane,
    overlay: &str,
    components: &[&str],
    namespace: &str,
) -> Vec<Value> {
    let directory = kustomization(cluster, overlay, components, namespace);
    let built = cluster.kubectl(&["kustomize", directory.to_str().unwrap()]).await;
    objects(&built.success())
}

/// Writes that kustomization and returns its directory.
pub fn kustomization(cluster: &ControlPlane, overlay: &str, components: &[&str], namespace: &str) -> PathBuf {
    let name = [&[overlay], components, &[namespace]].concat().join("-");
    let directory = cluster.directory().join(name);
    std::fs::create_dir_all(&directory).unwrap();
    let up = "../".repeat(directory.components().count() - 1);
    let manifests = repository().join("manifests");
    let manifests = format!("{up}{}", manifests.display()).replace("//", "/");
    let components: Vec<_> = components
        .iter()
        .map(|name| format!("{manifests}/{name}"))
        .collect();
    let text = json!({
        "namespace": namespace,
        "resources": [format!("{manifests}/overlays/{overlay}")],
        "components": components,
    });
    std::fs::write(directory.join("kustomization.yaml"), text.to_string()).unwrap();
    directory
}

pub fn objects(yaml: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(yaml).unwrap()
}

/// Returns the object of this kind and name.
pub fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let is = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
    objects
        .iter()
        .find(is)
        .unwrap_or_else(|| panic!("no {kind} {name}"))
}

/// A permission.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// The API group. Empty for the core group.
    pub group: String,
    /// The resource, with its subresource after a `/`.
    pub resource: String,
    pub verb: String,
}

/// Returns the permissions of a role.
pub fn permissions(role: &Value) -> BTreeSet<Permission> {
    let texts = |list: &Value| -> Vec<String> { serde_json::from_value(list.clone()).unwrap() };
    let mut all = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                let permission = |verb| Permission {
                    group: group.clone(),
                    resource: resource.clone(),
                    verb,
                };
                all.extend(texts(&rule["verbs"]).into_iter().map(permission));
            }
        }
    }
    all
}

/// Returns the role without this permission. The others are unchanged.
pub fn without(role: &Value, taken: &Permission) -> Value {
    let mut rules = Vec::new();
    for rule in role["rules"].as_array().unwrap() {
        for resource in rule["resources"].as_array().unwrap() {
            let mut one = rule.clone();
            one["resources"] = Value::from(vec![resource.clone()]);
            if *resource == taken.resource && rule["apiGroups"][0] == *taken.group {
                let verbs = one["verbs"].as_array_mut().unwrap();
                verbs.retain(|verb| *verb != taken.verb);
                if verbs.is_empty() {
                    continue;
                }
            }
            rules.push(one);
        }
    }
    let mut role = role.clone();
    role["rules"] = Value::from(rules);
    role
}
