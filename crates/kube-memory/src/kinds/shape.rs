//! The shapes of built-in kinds, from the schemas of their Rust types, so that an object that fits needs no decoding.
//! Without them a job's life takes 13.6 % more instructions (callgrind of benches/memory.rs).
//!
//! A [`Schema`](kube_schema::Schema) rejects values of custom resources exactly as the API server does. A shape may be
//! stricter than the decoder: it fits only values that the decoder would certainly not change.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::Value;

/// The shape of values that their decoder does not change.
#[derive(Debug)]
pub(crate) enum Shape {
    /// An object with these members and no others. No required member is missing.
    Object {
        members: BTreeMap<String, Shape>,
        required: Vec<String>,
    },
    Map(Box<Shape>),
    List(Box<Shape>),
    Text,
    Time,
    Flag,
    /// An integer of 32 bits.
    Short,
    /// An integer of 64 bits.
    Long,
    /// No value fits, so that every value is decoded.
    Unclear,
}

impl Shape {
    /// Returns the shape of a type.
    pub(crate) fn from_type<T: JsonSchema>() -> Self {
        let mut settings = SchemaSettings::default();
        settings.inline_subschemas = true;
        let schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
        Self::from_schema(schema.as_value())
    }

    fn from_schema(schema: &Value) -> Self {
        let text = |key| schema.get(key).and_then(Value::as_str);
        match (text("type"), text("format")) {
            (Some("string"), None) => Self::Text,
            (Some("string"), Some("date-time")) => Self::Time,
            (Some("boolean"), _) => Self::Flag,
            (Some("integer"), Some("int32")) => Self::Short,
            (Some("integer"), Some("int64")) => Self::Long,
            (Some("array"), _) => schema.get("items").map_or(Self::Unclear, |items| {
                Self::List(Box::new(Self::from_schema(items)))
            }),
            (Some("object"), _) => Self::object_from_schema(schema),
            // Quantities and ports. Numbers are left to the decoder.
            (None, None) if schema.get("x-kubernetes-int-or-string").is_some() => Self::Text,
            _ => Self::Unclear,
        }
    }

    fn object_from_schema(schema: &Value) -> Self {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            let required = schema.get("required").and_then(Value::as_array);
            return Self::Object {
                members: properties
                    .iter()
                    .map(|(key, schema)| (key.clone(), Self::from_schema(schema)))
                    .collect(),
                required: required
                    .into_iter()
                    .flatten()
                    .filter_map(|key| key.as_str().map(str::to_owned))
                    .collect(),
            };
        }
        match schema.get("additionalProperties") {
            Some(each @ Value::Object(_)) => Self::Map(Box::new(Self::from_schema(each))),
            _ => Self::Unclear,
        }
    }

    /// Returns the shape of a member of an object.
    pub(crate) fn member(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object { members, .. } => members.get(key),
            _ => None,
        }
    }

    /// Returns true if an object has all required members.
    pub(crate) fn has_required(&self, has: impl Fn(&str) -> bool) -> bool {
        match self {
            Self::Object { required, .. } => required.iter().all(|key| has(key)),
            _ => false,
        }
    }

    /// Returns true if these members of an object fit. They must be ordered by key. Required members may be missing.
    pub(crate) fn fits_members<'a>(&self, mut all: impl Iterator<Item = (&'a str, &'a Value)>) -> bool {
        let Self::Object { members, .. } = self else {
            return false;
        };
        // Both are in order.
        let mut known = members.iter();
        all.all(|(key, member)| {
            let found = known.find(|(name, _)| name.as_str() >= key);
            found.is_some_and(|(name, known)| name == key && known.fits(member))
        })
    }

    /// Returns true if a value fits: every member is known and has its type, and no required member is missing.
    pub(crate) fn fits(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Object { .. }, Value::Object(map)) => {
                self.fits_members(map.iter().map(|(key, member)| (key.as_str(), member)))
                    && self.has_required(|key| map.contains_key(key))
            }
            (Self::Map(each), Value::Object(map)) => map.values().all(|member| each.fits(member)),
            (Self::List(each), Value::Array(items)) => items.iter().all(|item| each.fits(item)),
            (Self::Text, Value::String(_)) | (Self::Flag, Value::Bool(_)) => true,
            (Self::Time, Value::String(text)) => text.parse::<Timestamp>().is_ok(),
            (Self::Short, Value::Number(number)) => number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()),
            (Self::Long, Value::Number(number)) => number.is_i64(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Event, Pod, Service};
    use serde::{Serialize, de::DeserializeOwned};
    use serde_json::json;

    use super::*;

    /// Returns all values that differ from `value` in one place.
    fn neighbors(value: &Value) -> Vec<Value> {
        let others = [
            json!(null),
            json!(true),
            json!(7),
            json!(-1),
            json!(1.5),
            json!(5_000_000_000_i64),
            json!(u64::MAX),
            json!("text"),
            json!("2030-01-01T00:00:00Z"),
            json!("2030-01-01"),
            json!(""),
            json!([]),
            json!({}),
            json!({"unknown": 1}),
        ];
        let mut all = others.to_vec();
        match value {
            Value::Object(map) => {
                for (key, member) in map {
                    let mut less = map.clone();
                    less.remove(key);
                    // A name that sorts just before or after a known one.
                    for almost in [&key[..key.len() - 1], &format!("{key}a")] {
                        let mut renamed = less.clone();
                        renamed.insert(almost.to_owned(), member.clone());
                        all.push(Value::Object(renamed));
                    }
                    all.push(Value::Object(less));
                    for other in neighbors(member) {
                        let mut changed = map.clone();
                        changed.insert(key.clone(), other);
                        all.push(Value::Object(changed));
                    }
                }
                let mut more = map.clone();
                more.insert("unknown".to_owned(), json!(1));
                all.push(Value::Object(more));
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    for other in neighbors(item) {
                        let mut changed = items.clone();
                        changed[index] = other;
                        all.push(Value::Array(changed));
                    }
                }
            }
            _ => {}
        }
        all
    }

    /// Checks that a value that fits can be decoded, and loses nothing when it is encoded again.
    fn agrees<T: JsonSchema + DeserializeOwned + Serialize>(value: &Value, least: usize) {
        let known = Shape::from_type::<T>();
        assert!(known.fits(value), "{value}");
        let mut fitting = 0;
        for other in neighbors(value) {
            if known.fits(&other) {
                let typed: T =
                    serde_json::from_value(other.clone()).unwrap_or_else(|e| panic!("{e}: {other}"));
                let again = serde_json::to_value(typed).unwrap();
                let mut both = again.clone();
                json_patch::merge(&mut both, &other);
                assert_eq!(both, again, "something was lost");
                fitting += 1;
            }
        }
        assert!(fitting >= least, "{fitting} neighbors fit");
    }

    #[test]
    fn a_value_that_fits_is_decoded_unchanged() {
        let metadata = json!({
            "name": "a", "namespace": "b", "uid": "u", "generation": 1, "labels": {"a": "b"},
            "creationTimestamp": "2030-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30, "finalizers": ["f"],
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u", "controller": true, "blockOwnerDeletion": true}
            ],
        });
        agrees::<Pod>(
            &json!({
                "metadata": metadata,
                "spec": {
                    "restartPolicy": "Never", "nodeSelector": {"a": "b"}, "terminationGracePeriodSeconds": 30,
                    "containers": [{
                        "name": "c", "image": "i", "command": ["x"], "env": [{"name": "A", "value": "b"}],
                        "ports": [{"containerPort": 9091, "name": "p", "protocol": "TCP"}],
                        "resources": {"limits": {"cpu": "1"}},
                    }],
                },
                "status": {
                    "phase": "Failed", "startTime": "2030-01-01T00:00:00Z",
                    "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2030-01-01T00:00:00Z"}],
                    "containerStatuses": [{
                        "name": "c", "image": "i", "imageID": "i", "ready": false, "restartCount": 2,
                        "state": {"terminated": {"exitCode": 137, "reason": "Error"}},
                    }],
                },
            }),
            50,
        );
        agrees::<Service>(
            &json!({
                "metadata": metadata,
                "spec": {"clusterIP": "None", "clusterIPs": ["None"], "selector": {"a": "b"}, "type": "ClusterIP",
                    "ports": [{"name": "p", "port": 9091, "protocol": "TCP"}]},
                "status": {"loadBalancer": {}},
            }),
            30,
        );
        agrees::<Event>(
            &json!({
                "metadata": metadata, "count": 1, "reason": "r", "message": "m",
                "involvedObject": {"kind": "K", "name": "n"}, "firstTimestamp": "2030-01-01T00:00:00Z",
            }),
            20,
        );
    }
}
