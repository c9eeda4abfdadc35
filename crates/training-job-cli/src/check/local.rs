//! Errors that a job has only as processes of this machine (pure).

use kube_schema::{field, item};
use serde_json::Value;
use training_job::{FieldErrors, Settings};

use crate::kinds::Kind;

/// Returns the containers without a command, because images are not pulled.
pub(super) fn errors(kind: &Kind, job: &Value) -> FieldErrors {
    let mut errors = FieldErrors::default();
    // The check of the job has reported why nothing can be rendered.
    let objects = kind.render(job, &Settings::default()).unwrap_or_default();
    let pods: Vec<&Value> = objects.iter().filter(|object| object["kind"] == "Pod").collect();
    let label = kind.framework.keys().replica_type();
    let role = |pod: &Value| {
        pod["metadata"]["labels"][&label]
            .as_str()
            .unwrap_or_default()
            .to_lowercase()
    };
    let mut found = Vec::new();
    templates("spec", &job["spec"], &mut found);
    for (path, template) in found {
        let path_words: Vec<String> = path.split('.').map(str::to_lowercase).collect();
        let is_its_role = |pod: &&&Value| path_words.contains(&role(pod));
        let of_role: Vec<&Value> = pods.iter().filter(is_its_role).copied().collect();
        // A list of roles does not have their names in its paths.
        let pods = if of_role.is_empty() { &pods } else { &of_role };
        let containers = template["spec"]["containers"].as_array();
        for (n, container) in containers.into_iter().flatten().enumerate() {
            let is_same = |other: &&Value| other["name"] == container["name"] && !has_command(other);
            let runs_nothing = |pod: &&Value| {
                let containers = pod["spec"]["containers"].as_array();
                containers.into_iter().flatten().any(|other| is_same(&other))
            };
            if !has_command(container) && pods.iter().any(runs_nothing) {
                let image = container["image"].as_str().unwrap_or_default();
                errors.push(
                    format!("{}.command", item(&format!("{path}.spec.containers"), n)),
                    format!("must be set, because images are not pulled: the command of {image} is unknown"),
                    "add the command that runs on this machine, such as [python, train.py]",
                );
            }
        }
    }
    errors
}

fn has_command(container: &Value) -> bool {
    container["command"]
        .as_array()
        .is_some_and(|words| !words.is_empty())
}

/// Finds the pod templates below `path`.
fn templates<'v>(path: &str, value: &'v Value, found: &mut Vec<(String, &'v Value)>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = field(path, key);
                match key == "template" && value["spec"]["containers"].is_array() {
                    true => found.push((path, value)),
                    false => templates(&path, value, found),
                }
            }
        }
        Value::Array(items) => {
            for (n, value) in items.iter().enumerate() {
                templates(&item(path, n), value, found);
            }
        }
        _ => {}
    }
}
