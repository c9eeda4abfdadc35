//! The sub-resource `scale`: a number of replicas within an object.

use serde_json::{Map, Value, json};

use crate::object::{cause::Cause, document::Document};

/// The paths of the numbers of replicas in an object, each as the names of members.
#[derive(Debug, Clone)]
pub(crate) struct ScalePaths {
    spec: Vec<String>,
    status: Vec<String>,
    selector: Vec<String>,
    /// The number of replicas of an object without one.
    default: Option<i64>,
}

fn path(text: &str) -> Vec<String> {
    let names = text.split('.').filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

/// Returns the selector of a workload as a text, or `None` if it has expressions.
fn selector_of_workload(selector: &Value) -> Option<String> {
    let labels = match selector.get("matchLabels") {
        Some(labels) if selector.get("matchExpressions").is_none() => labels,
        Some(_) => return None,
        // A ReplicationController has only labels.
        None => selector,
    };
    let pair = |(key, value): (&String, &Value)| Some(format!("{key}={}", value.as_str()?));
    let mut pairs: Vec<String> = labels.as_object()?.iter().map(pair).collect::<Option<_>>()?;
    pairs.sort();
    Some(pairs.join(","))
}

impl ScalePaths {
    /// Returns the paths of the built-in kinds that have this sub-resource.
    pub(crate) fn of_workload() -> Self {
        Self {
            spec: path(".spec.replicas"),
            status: path(".status.replicas"),
            selector: Vec::new(),
            default: Some(1),
        }
    }

    /// Returns the paths of a version of a CustomResourceDefinition, if it has this sub-resource.
    pub(crate) fn of_version(version: &Value) -> Option<Self> {
        let scale = version.get("subresources")?.get("scale")?;
        let text = |key: &str| path(scale.get(key).and_then(Value::as_str).unwrap_or_default());
        Some(Self {
            spec: text("specReplicasPath"),
            status: text("statusReplicasPath"),
            selector: text("labelSelectorPath"),
            default: None,
        })
    }

    /// Returns the path of the wanted number as it is written in a definition.
    pub(crate) fn spec_path(&self) -> String {
        format!(".{}", self.spec.join("."))
    }

    /// Returns the sub-resource of an object, or `None` if the object has no wanted number.
    pub(crate) fn read(&self, object: &Value) -> Option<Value> {
        let at = |path: &[String]| match path {
            [] => None,
            path => path.iter().try_fold(object, |value, name| value.get(name)),
        };
        let wanted = at(&self.spec).and_then(Value::as_i64).or(self.default)?;
        let mut status = json!({"replicas": at(&self.status).and_then(Value::as_i64).unwrap_or_default()});
        let selector = match self.default {
            Some(_) => selector_of_workload(&object["spec"]["selector"]),
            None => at(&self.selector).and_then(Value::as_str).map(str::to_owned),
        };
        if let Some(selector) = selector.filter(|text| !text.is_empty()) {
            status["selector"] = Value::from(selector);
        }
        let mut metadata = Map::new();
        for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
            if let Some(value) = object["metadata"].get(key) {
                metadata.insert(key.to_owned(), value.clone());
            }
        }
        Some(json!({
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": metadata,
            "spec": {"replicas": wanted},
            "status": status,
        }))
    }

    /// Returns the cause for a wanted number below zero.
    pub(crate) fn check(&self, object: &Document) -> Option<Cause> {
        let (first, rest) = self.spec.split_first()?;
        let number = rest
            .iter()
            .try_fold(object.get(first)?, |value, name| value.get(name))?;
        let why = "should be a non-negative integer";
        let is_negative = number.as_i64().is_some_and(|number| number < 0);
        is_negative.then(|| Cause::invalid(self.spec_path(), number, why))
    }

    /// Sets the wanted number. Members on the way to it must exist, except for the last one.
    pub(crate) fn write(&self, object: &mut Document, replicas: i64) {
        let Some((last, way)) = self.spec.split_last() else {
            return;
        };
        object.edit(|object| {
            let parent = way
                .iter()
                .try_fold(object, |value, name| value.get_mut(name.as_str()));
            if let Some(parent) = parent.and_then(Value::as_object_mut) {
                parent.insert(last.clone(), Value::from(replicas));
            }
        });
    }
}
