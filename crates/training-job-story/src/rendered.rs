//! A summary of the objects that the operator creates for a job.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::text::line;

/// The maximum number of names of environment variables.
const MAX_NAMES: usize = 100;

/// The pods of a role. Values of environment variables are left out, because they may be secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RenderedRole {
    /// Role in lower case.
    pub role: String,
    /// Number of pods.
    pub pods: usize,
    /// Image of the main container.
    pub image: String,
    /// Command and arguments of the main container.
    pub command: String,
    /// Requests and limits of the main container as JSON.
    pub resources: String,
    /// Names of the environment variables of the main container.
    pub env: Vec<String>,
}

impl RenderedRole {
    /// Returns a summary of each role of these rendered objects. `role` is the key of the label with a pod's role.
    pub fn of(objects: &[Value], role: &str) -> Vec<Self> {
        let mut roles: Vec<Self> = Vec::new();
        for pod in objects.iter().filter(|object| object["kind"] == "Pod") {
            let name = line(pod["metadata"]["labels"][role].as_str().unwrap_or_default());
            match roles.iter_mut().find(|known| known.role == name) {
                Some(known) => known.pods += 1,
                None => roles.push(Self::new(name, &pod["spec"]["containers"][0])),
            }
        }
        roles
    }

    fn new(role: String, container: &Value) -> Self {
        let words = |key: &str| container[key].as_array().into_iter().flatten();
        let command: Vec<_> = words("command")
            .chain(words("args"))
            .filter_map(Value::as_str)
            .collect();
        let resources = &container["resources"];
        Self {
            role,
            pods: 1,
            image: line(container["image"].as_str().unwrap_or_default()),
            command: line(&command.join(" ")),
            resources: match resources {
                Value::Null => String::new(),
                resources => line(&resources.to_string()),
            },
            env: words("env")
                .filter_map(|variable| variable["name"].as_str())
                .take(MAX_NAMES)
                .map(line)
                .collect(),
        }
    }
}
