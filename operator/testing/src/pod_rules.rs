//! Jobs with pods that the API server accepts or refuses: `operator/tests/pod_rules.yaml`.

use std::fs;

use serde_json::{Value, json};

use crate::program::root;

/// The path of the pod's template in the jobs.
const TEMPLATE: &str = "spec.pytorchReplicaSpecs.Master.template";

pub struct PodRule {
    pub name: String,
    pub job: Value,
    /// The path of the error of `validate`. None if the pod is accepted.
    pub path: Option<String>,
    /// The path of the warning of `validate` about a pod that is accepted.
    pub warning: Option<String>,
    /// The field of the pod that the API server names.
    pub server: String,
}

/// Returns the rows of the table.
pub fn all() -> Vec<PodRule> {
    let text = fs::read_to_string(root().join("operator/tests/pod_rules.yaml")).unwrap();
    let rows: Vec<Value> = serde_saphyr::from_str(&text).unwrap();
    // 256 KiB, and a byte more.
    let annotated = [262_143, 262_144].map(|bytes| {
        let field = (bytes > 262_143).then_some("metadata.annotations");
        let annotations = json!({"a": "b".repeat(bytes)});
        json!({"name": bytes.to_string(), "metadata": {"annotations": annotations}, "field": field})
    });
    let all: Vec<_> = rows.iter().chain(&annotated).map(row).collect();
    assert!(all.len() > 200, "{}", all.len());
    all
}

fn row(row: &Value) -> PodRule {
    let mut container = json!({"name": "pytorch", "image": "x:1"});
    merge(&mut container, &row["container"]);
    let mut spec = json!({"containers": [container]});
    merge(&mut spec, &row["spec"]);
    if !row["init"].is_null() {
        let mut init = json!({"name": "init", "image": "x:1"});
        merge(&mut init, &row["init"]);
        spec["initContainers"] = json!([init]);
    }
    let field = row["field"].as_str();
    let of_pod = |field: &str| match (field.is_empty(), field.starts_with("metadata")) {
        (true, _) => "spec".to_owned(),
        (_, true) => field.to_owned(),
        _ => format!("spec.{field}"),
    };
    PodRule {
        name: row["name"].as_str().unwrap().to_owned(),
        job: json!({
            "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "job"},
            "spec": {"pytorchReplicaSpecs": {"Master": {"template": {"metadata": row["metadata"], "spec": spec}}}},
        }),
        path: field.map(|field| format!("{TEMPLATE}.{}", of_pod(field))),
        warning: row["warning"]
            .as_str()
            .map(|field| format!("{TEMPLATE}.{}", of_pod(field))),
        server: of_pod(row["server"].as_str().or(field).unwrap_or_default()),
    }
}

fn merge(into: &mut Value, more: &Value) {
    for (key, value) in more.as_object().into_iter().flatten() {
        into[key] = value.clone();
    }
}
