//! Selects a part of the rendered objects.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};
use training_job::api::labels::Keys;

use crate::exit::Failure;
use crate::kinds::Kinds;

/// A replica as `--replica` names it: `worker-3`, a pod's name such as `job-worker-3`, or `launcher` for the only
/// replica of a role whose pod has no index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaName(String);

impl FromStr for ReplicaName {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_lowercase()))
    }
}

impl fmt::Display for ReplicaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The replica that an object belongs to.
struct ReplicaOf<'o> {
    role: &'o str,
    /// Unset for the only replica of a role whose pod has no index.
    index: Option<u32>,
    /// The name of its pod and service.
    name: &'o str,
}

impl<'o> ReplicaOf<'o> {
    fn of(object: &'o Value, keys: Keys) -> Option<Self> {
        let role = Some(label(object, &keys.replica_type())).filter(|role| !role.is_empty())?;
        let index = label(object, &keys.replica_index());
        let index = match index.is_empty() {
            true => None,
            false => Some(index.parse().ok()?),
        };
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        Some(Self { role, index, name })
    }

    fn is_called(&self, ReplicaName(name): &ReplicaName) -> bool {
        *name == self.name
            || *name == format!("{}-{}", self.role, self.index.unwrap_or(0))
            || self.index.is_none() && *name == self.role
    }
}

/// Returns the value of a label, or "".
pub(super) fn label<'o>(object: &'o Value, key: &str) -> &'o str {
    object["metadata"]["labels"][key].as_str().unwrap_or_default()
}

/// Keeps the objects of one replica in every job that has it.
/// `option` is the option with the name.
///
/// # Errors
/// No job has the replica.
pub fn keep_replica(
    option: &str,
    objects: &mut Vec<Value>,
    kinds: &Kinds,
    name: &ReplicaName,
) -> Result<(), Failure> {
    let is_wanted = |object: &Value| {
        ReplicaOf::of(object, kinds.keys_of(object)).is_some_and(|replica| replica.is_called(name))
    };
    if !objects.iter().any(is_wanted) {
        let mut last = BTreeMap::new();
        for replica in objects
            .iter()
            .filter_map(|object| ReplicaOf::of(object, kinds.keys_of(object)))
        {
            let highest: &mut Option<u32> = last.entry(replica.role.to_owned()).or_default();
            *highest = replica.index.max(*highest);
        }
        let ranges = last.into_iter().map(|(role, last)| match last {
            None => role,
            Some(0) => format!("{role}-0"),
            Some(last) => format!("{role}-0 to {role}-{last}"),
        });
        let existing = ranges.collect::<Vec<_>>().join(", ");
        return Err(Failure::new(
            option,
            format!("no job has the replica {name}; use one of {existing}"),
        ));
    }
    objects.retain(is_wanted);
    Ok(())
}

/// Returns a pod's name and the environment of its containers.
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
