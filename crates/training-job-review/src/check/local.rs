//! Errors that a job has only as processes of this machine (pure).

use kube_schema::{field, item};
use serde_json::Value;
use training_job::FieldErrors;

use crate::kinds::Kind;

/// Returns the containers without a command, because images are not pulled. `objects` are what the operator creates for the
/// job.
pub(super) fn errors(kind: &Kind, job: &Value, objects: &[Value]) -> FieldErrors {
    let mut errors = FieldErrors::default();
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

/// A ConfigMap or Secret with variables of a container, which must exist for the container to start.
#[derive(Debug)]
pub(super) struct Reference {
    kind: &'static str,
    name: String,
    /// The field with the name.
    path: String,
}

impl Reference {
    pub(super) fn is_to(&self, object: &Value) -> bool {
        object["kind"] == self.kind && object["metadata"]["name"] == *self.name
    }

    /// Returns the error of a reference to an object that is in none of the files.
    pub(super) fn error(&self) -> (String, String, String) {
        let Self { kind, name, path } = self;
        let problem = format!("{kind} {name} is in none of the files");
        let remedy = format!("add the {kind} to the files, or set optional: true to run without it");
        (path.clone(), problem, remedy)
    }
}

/// Returns the ConfigMaps and Secrets that the job's containers take variables from, except those of `objects`, which the
/// operator creates.
pub(super) fn references(job: &Value, objects: &[Value]) -> Vec<Reference> {
    let mut found = Vec::new();
    templates("spec", &job["spec"], &mut found);
    let mut references = Vec::new();
    for (path, template) in found {
        for list in ["containers", "initContainers"] {
            let containers = template["spec"][list].as_array().into_iter().flatten();
            for (n, container) in containers.enumerate() {
                let at = item(&format!("{path}.spec.{list}"), n);
                sources(
                    &container["envFrom"],
                    &format!("{at}.envFrom"),
                    "",
                    &mut references,
                );
                sources(
                    &container["env"],
                    &format!("{at}.env"),
                    "valueFrom",
                    &mut references,
                );
            }
        }
    }
    references.retain(|reference: &Reference| !objects.iter().any(|object| reference.is_to(object)));
    references
}

/// Adds the references of a list of variables, or of sources of variables. `member` holds the reference in each item.
fn sources(list: &Value, path: &str, member: &str, references: &mut Vec<Reference>) {
    for (n, source) in list.as_array().into_iter().flatten().enumerate() {
        let (source, at) = match member {
            "" => (source, item(path, n)),
            _ => (&source[member], field(&item(path, n), member)),
        };
        for (key, kind) in [
            ("configMapRef", "ConfigMap"),
            ("secretRef", "Secret"),
            ("configMapKeyRef", "ConfigMap"),
            ("secretKeyRef", "Secret"),
        ] {
            let reference = &source[key];
            if let Some(name) = reference["name"].as_str()
                && reference["optional"] != true
            {
                references.push(Reference {
                    kind,
                    name: name.to_owned(),
                    path: format!("{at}.{key}.name"),
                });
            }
        }
    }
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
