//! Decodes built-in kinds like a server with Go types: rejects members of the wrong type, drops unknown members, and
//! leaves out empty ones.

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
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::kinds::{Family, Target};

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

/// Decodes a value as its type, and encodes it again.
type RoundTrip = fn(&Value) -> Result<Value, String>;

fn round_trip<T: Serialize + for<'a> Deserialize<'a>>(value: &Value) -> Result<Value, String> {
    let typed = T::deserialize(value).map_err(|error| error.to_string())?;
    serde_json::to_value(typed).map_err(|error| error.to_string())
}

/// Drops the members of a value that its type does not have. Returns their paths, which begin with `path`.
fn prune_unknown(round_trip: RoundTrip, value: &mut Value, path: &str) -> Result<Vec<String>, String> {
    let mut unknown = Vec::new();
    let known = round_trip(value)?;
    prune(value, &known, path, &mut unknown);
    Ok(unknown)
}

/// Returns the round trip of a built-in kind, if its type is known.
fn round_trip_of(target: &Target) -> Option<RoundTrip> {
    Some(match (target.kind.family, target.kind.kind.as_str()) {
        (Family::Pod, _) => round_trip::<Pod>,
        (Family::Service, _) => round_trip::<Service>,
        (Family::Event, _) => round_trip::<Event>,
        (Family::Node, _) => round_trip::<Node>,
        (Family::Namespace, _) => round_trip::<Namespace>,
        (Family::Lease, _) => round_trip::<Lease>,
        (Family::Secret, _) => round_trip::<Secret>,
        (Family::Quota, _) => round_trip::<ResourceQuota>,
        (Family::Plain, "ConfigMap") => round_trip::<ConfigMap>,
        (Family::Plain, "ServiceAccount") => round_trip::<ServiceAccount>,
        _ => return None,
    })
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
    let Some(round_trip) = round_trip_of(target) else {
        return decode_metadata(body);
    };
    let unknown = prune_unknown(round_trip, body, "")?;
    tidy(body, "")?;
    Ok(unknown)
}

/// Like [`decode`], for the status of a pod.
pub(crate) fn decode_pod_status(status: &mut Value) -> Result<Vec<String>, String> {
    prune_unknown(round_trip::<PodStatus>, status, "status")
}

/// Like [`decode`], for the metadata of an object of any kind.
pub(crate) fn decode_metadata(body: &mut Value) -> Result<Vec<String>, String> {
    match body.get_mut("metadata") {
        Some(metadata) => prune_unknown(round_trip::<ObjectMeta>, metadata, "metadata"),
        None => Ok(Vec::new()),
    }
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
