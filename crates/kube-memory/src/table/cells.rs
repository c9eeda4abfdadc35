//! The rows of built-in kinds other than pods.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::json::array;
use crate::table::age::since;

const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";

fn text<'v>(value: &'v Value, or: &'v str) -> &'v str {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or(or)
}

/// Returns the number of entries of a map or list.
pub(super) fn length(value: &Value) -> usize {
    let items = value.as_array().map_or(0, Vec::len);
    items + value.as_object().map_or(0, serde_json::Map::len)
}

fn joined<'v>(parts: impl Iterator<Item = &'v str>) -> String {
    let parts: Vec<_> = parts.collect();
    match parts.is_empty() {
        true => NONE.to_owned(),
        false => parts.join(","),
    }
}

pub(super) fn service(service: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &service["spec"];
    let type_ = text(&spec["type"], "ClusterIP");
    let external = match type_ {
        "ExternalName" => text(&spec["externalName"], NONE).to_owned(),
        _ => joined(array(spec.get("externalIPs")).filter_map(Value::as_str)),
    };
    let external = match (type_, external.as_str()) {
        ("LoadBalancer", NONE) => "<pending>".to_owned(),
        _ => external,
    };
    let ports: Vec<_> = array(spec.get("ports"))
        .map(|port| {
            let (number, protocol) = (&port["port"], text(&port["protocol"], "TCP"));
            match port["nodePort"].as_i64() {
                Some(node) if node > 0 => format!("{number}:{node}/{protocol}"),
                _ => format!("{number}/{protocol}"),
            }
        })
        .collect();
    let selector = spec["selector"].as_object().into_iter().flatten();
    let selector: Vec<_> = selector
        .map(|(key, value)| format!("{key}={}", text(value, "")))
        .collect();
    vec![
        json!(type_),
        json!(text(&spec["clusterIP"], NONE)),
        json!(external),
        json!(joined(ports.iter().map(String::as_str))),
        json!(since(&service["metadata"]["creationTimestamp"], now)),
        json!(joined(selector.iter().map(String::as_str))),
    ]
}

pub(super) fn node(node: &Value, now: Timestamp) -> Vec<Value> {
    let (status, info) = (&node["status"], &node["status"]["nodeInfo"]);
    let ready = array(status.get("conditions")).find(|condition| condition["type"] == "Ready");
    let mut state = match ready.map(|ready| ready["status"] == "True") {
        Some(true) => "Ready".to_owned(),
        Some(false) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if node["spec"]["unschedulable"] == true {
        state.push_str(",SchedulingDisabled");
    }
    let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
    let roles = labels.filter_map(
        |(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None => (key == "kubernetes.io/role").then(|| text(value, "")),
        },
    );
    let address = |type_: &str| {
        let mut addresses = array(status.get("addresses"));
        let found = addresses.find(|address| address["type"] == type_);
        json!(found.map_or(NONE, |address| text(&address["address"], NONE)))
    };
    vec![
        json!(state),
        json!(joined(roles.filter(|role| !role.is_empty()))),
        json!(since(&node["metadata"]["creationTimestamp"], now)),
        json!(text(&info["kubeletVersion"], "")),
        address("InternalIP"),
        address("ExternalIP"),
        json!(text(&info["osImage"], UNKNOWN)),
        json!(text(&info["kernelVersion"], UNKNOWN)),
        json!(text(&info["containerRuntimeVersion"], UNKNOWN)),
    ]
}

/// Returns the used and the allowed amounts of a quota: those of requests and objects, and those of limits.
pub(super) fn quota(quota: &Value) -> [String; 2] {
    let status = &quota["status"];
    let mut amounts = [Vec::new(), Vec::new()];
    let [requests, limits] = &mut amounts;
    for (name, hard) in status["hard"].as_object().into_iter().flatten() {
        let amount = format!("{name}: {}/{}", text(&status["used"][name], "0"), text(hard, "0"));
        match name.starts_with("limits.") {
            true => limits.push(amount),
            false => requests.push(amount),
        }
    }
    amounts.map(|amounts| amounts.join(", "))
}

/// Returns the cells of an event, in its form of the core group or of its own.
pub(super) fn event(event: &Value, now: Timestamp) -> Vec<Value> {
    // The first of these members that has a value.
    let first = |names: &[&str]| {
        let mut values = names.iter().map(|name| &event[*name]);
        values.find(|value| !value.is_null()).unwrap_or(&Value::Null)
    };
    let begin = since(
        first(&["firstTimestamp", "deprecatedFirstTimestamp", "eventTime"]),
        now,
    );
    let last = first(&["lastTimestamp", "deprecatedLastTimestamp"]);
    let (series, count) = (&event["series"], first(&["count", "deprecatedCount"]));
    let (end, count) = match (series.is_null(), last.is_null()) {
        (false, _) => (since(&series["lastObservedTime"], now), series["count"].as_i64()),
        (true, true) => (begin.clone(), count.as_i64()),
        (true, false) => (since(last, now), count.as_i64()),
    };
    let object = first(&["involvedObject", "regarding"]);
    let (kind, name) = (
        text(&object["kind"], "").to_lowercase(),
        text(&object["name"], ""),
    );
    let target = if name.is_empty() {
        kind
    } else {
        format!("{kind}/{name}")
    };
    let source = first(&["source", "deprecatedSource"]);
    let component = text(
        &source["component"],
        text(first(&["reportingComponent", "reportingController"]), ""),
    );
    let host = text(&source["host"], text(&event["reportingInstance"], ""));
    let source = match host {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    };
    vec![
        json!(end),
        json!(text(&event["type"], "")),
        json!(text(&event["reason"], "")),
        json!(target),
        json!(text(&object["fieldPath"], "")),
        json!(source),
        json!(text(first(&["message", "note"]), "").trim()),
        json!(begin),
        json!(count.filter(|count| *count > 0).unwrap_or(1)),
        json!(text(&event["metadata"]["name"], "")),
    ]
}
