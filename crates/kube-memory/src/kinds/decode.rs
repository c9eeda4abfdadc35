//! Decodes built-in kinds like a server with Go types: rejects members of the wrong type, drops unknown members, and
//! leaves out empty ones.

use std::sync::LazyLock;

use k8s_openapi::{
    api::{
        coordination::v1::Lease,
        core::v1::{
            ConfigMap, Event, Namespace, Node, Pod, PodStatus, ResourceQuota, Secret, Service, ServiceAccount,
        },
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube_schema::quantity::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::kinds::{Family, Target, shape::Shape};
use crate::object::{document::Document, members::Members};

/// Members that are maps. An empty map is left out; another empty object is kept.
const MAPS: [&str; 9] = [
    "annotations",
    "binaryData",
    "data",
    "labels",
    "limits",
    "nodeSelector",
    "requests",
    "selector",
    "stringData",
];

/// Members whose values are quantities.
const QUANTITIES: [&str; 6] = ["allocatable", "capacity", "hard", "limits", "requests", "used"];
/// Members that are quantities.
const QUANTITY: [&str; 2] = ["divisor", "sizeLimit"];
/// Members whose values are times with microseconds (`MicroTime`).
const MICRO_TIMES: [&str; 4] = ["acquireTime", "eventTime", "lastObservedTime", "renewTime"];

/// The API server's message for a text that is not a quantity.
const NO_QUANTITY: &str = "quantities must match the regular expression \
    '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

struct Decoder {
    shape: Shape,
    round_trip: fn(&Value) -> Result<Value, String>,
}

impl Decoder {
    fn for_type<T: JsonSchema + Serialize + for<'a> Deserialize<'a>>() -> Self {
        Self {
            shape: Shape::from_type::<T>(),
            round_trip: |value| {
                let typed = T::deserialize(value).map_err(|error| error.to_string())?;
                serde_json::to_value(typed).map_err(|error| error.to_string())
            },
        }
    }

    /// Returns true if decoding would not change a document.
    fn accepts_unchanged(&self, body: &Document) -> bool {
        let (shape, metadata) = (&self.shape, body.metadata());
        shape.fits_members(body.members())
            && metadata.is_none_or(|all| {
                shape
                    .member("metadata")
                    .is_some_and(|shape| shape.fits_members(all.iter()))
            })
            && shape.has_required(|key| body.contains_key(key) || (key == "metadata" && metadata.is_some()))
    }

    /// Drops the unknown members of a value. Returns their paths, which begin with `path`.
    fn prune(&self, value: &mut Value, path: &str) -> Result<Vec<String>, String> {
        let mut unknown = Vec::new();
        if !self.shape.fits(value) {
            let known = (self.round_trip)(value)?;
            prune(value, &known, path, &mut unknown);
        }
        Ok(unknown)
    }
}

macro_rules! decoder {
    ($kind:ty) => {{
        static DECODER: LazyLock<Decoder> = LazyLock::new(Decoder::for_type::<$kind>);
        &*DECODER
    }};
}

/// Returns the decoder of a built-in kind, if it has one.
fn decoder(target: &Target) -> Option<&'static Decoder> {
    Some(match (target.kind.family, target.kind.kind.as_str()) {
        (Family::Pod, _) => decoder!(Pod),
        (Family::Service, _) => decoder!(Service),
        (Family::Event, _) => decoder!(Event),
        (Family::Node, _) => decoder!(Node),
        (Family::Namespace, _) => decoder!(Namespace),
        (Family::Lease, _) => decoder!(Lease),
        (Family::Secret, _) => decoder!(Secret),
        (Family::Quota, _) => decoder!(ResourceQuota),
        (Family::Plain, "ConfigMap") => decoder!(ConfigMap),
        (Family::Plain, "ServiceAccount") => decoder!(ServiceAccount),
        _ => return None,
    })
}

/// Returns true only if [`decode`] would certainly not change an object, which must have no nulls.
pub(crate) fn is_decoded(target: &Target, body: &Document) -> bool {
    let mut members = body.members();
    let mut metadata = body.metadata().into_iter().flat_map(Members::iter);
    decoder(target).is_some_and(|decoder| decoder.accepts_unchanged(body))
        && members.all(|(key, member)| is_tidy(key, member, ""))
        && metadata.all(|(key, member)| is_tidy(key, member, "metadata"))
}

/// Returns true if [`tidy`] would not change the member `key` of an object called `of`, and the member contains no
/// null.
fn is_tidy(key: &str, member: &Value, of: &str) -> bool {
    match member {
        Value::Null => false,
        Value::Number(_) => !is_quantity(key, of),
        Value::String(text) if is_quantity(key, of) => {
            canonical_quantity(text).is_some_and(|canonical| canonical == *text)
        }
        Value::String(_) if MICRO_TIMES.contains(&key) => false,
        _ => is_kept(key, member, of) && is_inside_tidy(member, key),
    }
}

fn is_inside_tidy(value: &Value, of: &str) -> bool {
    match value {
        Value::Object(members) => members.iter().all(|(key, member)| is_tidy(key, member, of)),
        Value::Array(items) => items.iter().all(|item| is_inside_tidy(item, of)),
        _ => true,
    }
}

/// Returns false if the member `key` of an object called `of` is left out because it is empty.
fn is_kept(key: &str, member: &Value, of: &str) -> bool {
    match member {
        Value::Array(items) => !items.is_empty(),
        Value::Object(inner) => !(inner.is_empty() && MAPS.contains(&key)),
        Value::String(text) => !(text.is_empty() && of == "env" && key == "value"),
        _ => true,
    }
}

/// Drops the unknown members of an object of the stored version. Returns their paths.
///
/// # Errors
///
/// The decoder's message for a member of the wrong type.
pub(crate) fn decode(target: &Target, body: &mut Value) -> Result<Vec<String>, String> {
    let Some(decoder) = decoder(target) else {
        let metadata = body.get_mut("metadata");
        return metadata.map_or_else(|| Ok(Vec::new()), decode_metadata_value);
    };
    let unknown = decoder.prune(body, "")?;
    tidy(body, "")?;
    Ok(unknown)
}

/// Like [`decode`], for the status of a pod.
pub(crate) fn decode_pod_status(status: &mut Value) -> Result<Vec<String>, String> {
    decoder!(PodStatus).prune(status, "status")
}

/// Like [`decode`], for the metadata of an object of any kind.
pub(crate) fn decode_metadata(body: &mut Document) -> Result<Vec<String>, String> {
    let fits = |metadata: &Members| decoder!(ObjectMeta).shape.fits_members(metadata.iter());
    if body.metadata().is_none_or(fits) {
        return Ok(Vec::new());
    }
    body.edit(|body| {
        body.get_mut("metadata")
            .map_or_else(|| Ok(Vec::new()), decode_metadata_value)
    })
}

/// Like [`decode`], for metadata alone.
fn decode_metadata_value(metadata: &mut Value) -> Result<Vec<String>, String> {
    decoder!(ObjectMeta).prune(metadata, "metadata")
}

/// Removes the members that `known` does not have.
fn prune(value: &mut Value, known: &Value, path: &str, unknown: &mut Vec<String>) {
    match (value, known) {
        (Value::Object(members), Value::Object(known)) => members.retain(|key, member| {
            let path = if path.is_empty() {
                key.clone()
            } else {
                format!("{path}.{key}")
            };
            match known.get(key) {
                Some(known) => prune(member, known, &path, unknown),
                None if member.is_null() => {}
                None => {
                    unknown.push(path);
                    return false;
                }
            }
            true
        }),
        (Value::Array(items), Value::Array(known)) => {
            for (index, (item, known)) in items.iter_mut().zip(known).enumerate() {
                prune(item, known, &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}

/// Returns true if the member `key` of an object called `of` is a quantity.
fn is_quantity(key: &str, of: &str) -> bool {
    QUANTITIES.contains(&of) || QUANTITY.contains(&key)
}

/// Returns a quantity in the form in which the API server returns it, such as `500m` for `0.5`.
fn canonical_quantity(text: &str) -> Option<String> {
    Quantity::parse(text.trim()).map(|quantity| quantity.to_string())
}

/// Drops empty lists, empty maps and empty values of environment variables, and writes quantities in their canonical
/// form.
fn tidy(value: &mut Value, of: &str) -> Result<(), String> {
    match value {
        Value::Object(members) => {
            for (key, member) in members.iter_mut() {
                if is_quantity(key, of) && (member.is_number() || member.is_string()) {
                    let text = member.as_str().map_or_else(|| member.to_string(), str::to_owned);
                    *member = canonical_quantity(&text)
                        .ok_or_else(|| format!("{text:?}: {NO_QUANTITY}"))?
                        .into();
                } else if MICRO_TIMES.contains(&key.as_str()) {
                    check_micro_time(member)?;
                }
                tidy(member, key)?;
            }
            members.retain(|key, member| is_kept(key, member, of));
        }
        // Elements of a list are treated as members of the list's name.
        Value::Array(items) => items.iter_mut().try_for_each(|item| tidy(item, of))?,
        _ => {}
    }
    Ok(())
}

/// Rejects a `MicroTime` that does not have exactly six digits of a second.
fn check_micro_time(time: &Value) -> Result<(), String> {
    let Some(text) = time.as_str() else { return Ok(()) };
    let digits = text
        .split_once('.')
        .map_or(0, |(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count());
    if digits == 6 {
        return Ok(());
    }
    Err(format!("parsing time {text:?}: not to the microsecond"))
}

/// Adds the times that conditions of a node always have, as null.
pub(crate) fn show_node_times(status: &mut Map<String, Value>) {
    show_times(status, ["lastHeartbeatTime", "lastTransitionTime"]);
}

/// Adds times that conditions always have, as null.
pub(crate) fn show_times(status: &mut Map<String, Value>, keys: [&str; 2]) {
    for condition in status
        .get_mut("conditions")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        for key in keys {
            condition.entry(key).or_insert(Value::Null);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::kinds::{Registry, built_in};

    use super::*;

    /// Returns the result of `is_decoded` for a body, and true if decoding really does not change the body.
    fn fitted(plural: &str, body: &Value) -> (bool, bool) {
        let mut registry = Registry::default();
        for kind in built_in() {
            registry.add(kind);
        }
        let target = registry.by_plural(plural).unwrap();
        let document = Document::parse(body.to_string().as_bytes()).unwrap().unwrap();
        let mut after = body.clone();
        let known = decode(&target, &mut after).is_ok_and(|unknown| unknown.is_empty());
        (is_decoded(&target, &document), known && after == *body)
    }

    #[test]
    fn a_document_that_fits_is_unchanged() {
        let container = |more: Value| {
            let mut container = json!({"name": "c", "image": "i"});
            container
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            json!({"kind": "Pod", "metadata": {"name": "p", "labels": {"a": ""}}, "spec": {"containers": [container]}})
        };
        let with = |key: &str, value: Value| {
            let mut pod = container(json!({}));
            pod["metadata"][key] = value;
            pod
        };
        let event = |more: Value| {
            let mut event = json!({"metadata": {"name": "e"}, "involvedObject": {}});
            event
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            event
        };
        let as_it_is = [
            (
                "pods",
                container(json!({"env": [{"name": "A", "value": "b"}, {"name": "C"}]})),
            ),
            (
                "pods",
                container(json!({"resources": {"limits": {"cpu": "1"}}, "securityContext": {}})),
            ),
            (
                "pods",
                with(
                    "ownerReferences",
                    json!([{"apiVersion": "v", "kind": "k", "name": "n", "uid": "u"}]),
                ),
            ),
            (
                "events",
                event(json!({"count": 1, "lastTimestamp": "2030-01-01T00:00:00Z"})),
            ),
            (
                "services",
                json!({"metadata": {"name": "s"}, "spec": {"selector": {"a": "b"}, "clusterIP": "None"}}),
            ),
        ];
        for (plural, body) in as_it_is {
            assert_eq!(fitted(plural, &body), (true, true), "{body}");
        }
        let other = [
            ("pods", container(json!({"env": [{"name": "A", "value": ""}]}))),
            ("pods", container(json!({"env": []}))),
            ("pods", container(json!({"resources": {"limits": {"cpu": 1}}}))),
            (
                "pods",
                container(json!({"resources": {"limits": {"cpu": "0.5"}}})),
            ),
            (
                "pods",
                container(json!({"resources": {"limits": {"memory": "1GB"}}})),
            ),
            ("pods", container(json!({"resources": {"limits": {}}}))),
            ("pods", container(json!({"command": [null]}))),
            ("pods", container(json!({"unheard": "of"}))),
            ("pods", container(json!({"image": 5}))),
            ("pods", with("labels", json!({}))),
            ("pods", with("annotations", json!({"a": 1}))),
            ("pods", with("unheard", json!("of"))),
            ("pods", json!({"metadata": {"name": "p"}, "unheard": {}})),
            ("events", event(json!({"eventTime": "2030-01-01T00:00:00Z"}))),
            (
                "services",
                json!({"metadata": {"name": "s"}, "spec": {"selector": {}}}),
            ),
        ];
        for (plural, body) in other {
            assert_eq!(fitted(plural, &body), (false, false), "{body}");
        }
        // A body that lacks something or has nulls is decoded to find out.
        for (plural, body) in [
            ("events", json!({"metadata": {"name": "e"}})),
            ("pods", container(json!({"image": null}))),
        ] {
            assert!(!fitted(plural, &body).0, "{body}");
        }
    }
}
