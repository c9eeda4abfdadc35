//! Selects a part of what is rendered.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};
use training_job::api::labels;

use crate::exit::Failure;

/// A replica within its job, such as `worker-3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReplicaName {
    role: String,
    index: u32,
}

impl FromStr for ReplicaName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.rsplit_once('-')
            .filter(|(role, _)| !role.is_empty())
            .and_then(|(role, index)| {
                Some(Self {
                    role: role.to_lowercase(),
                    index: index.parse().ok()?,
                })
            })
            .ok_or_else(|| "write a role and an index from 0, such as worker-3".to_owned())
    }
}

impl fmt::Display for ReplicaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.role, self.index)
    }
}

/// The value of a label.
pub(super) fn label<'o>(object: &'o Value, key: &str) -> &'o str {
    object["metadata"]["labels"][key].as_str().unwrap_or_default()
}

/// Keeps one replica's objects, in every job that has it.
pub(super) fn keep_replica(objects: &mut Vec<Value>, name: &ReplicaName) -> Result<(), Failure> {
    let of = |object: &Value| {
        let index = label(object, labels::REPLICA_INDEX).parse().ok()?;
        Some((label(object, labels::REPLICA_TYPE).to_owned(), index))
    };
    let wanted = (name.role.clone(), name.index);
    if !objects.iter().any(|object| of(object).as_ref() == Some(&wanted)) {
        let mut last = BTreeMap::new();
        for (role, index) in objects.iter().filter_map(of) {
            let highest: &mut u32 = last.entry(role).or_default();
            *highest = index.max(*highest);
        }
        let ranges = last.into_iter().map(|(role, last)| match last {
            0 => format!("{role}-0"),
            last => format!("{role}-0 to {role}-{last}"),
        });
        let there_are = ranges.collect::<Vec<_>>().join(", ");
        return Err(Failure::new(
            "--replica",
            format!("no job has a {name}; there are {there_are}"),
        ));
    }
    objects.retain(|object| of(object).as_ref() == Some(&wanted));
    Ok(())
}

/// A pod of which only its name and its containers' environment are left.
pub(super) fn environment(pod: &Value) -> Value {
    let list = |field: &str| -> Option<Vec<Value>> {
        let containers = pod["spec"][field].as_array()?.iter();
        let with_env = containers.filter(|c| c.get("env").is_some());
        let kept = with_env.map(|c| {
            let mut container = json!({"name": c["name"], "env": c["env"]});
            if let Some(from) = c.get("envFrom") {
                container["envFrom"] = from.clone();
            }
            container
        });
        Some(kept.collect())
    };
    let mut spec = json!({"containers": list("containers").unwrap_or_default()});
    if let Some(init) = list("initContainers").filter(|init| !init.is_empty()) {
        spec["initContainers"] = init.into();
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]},
        "spec": spec,
    })
}
