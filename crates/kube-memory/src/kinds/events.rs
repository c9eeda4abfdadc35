//! Events have two forms, `v1` and `events.k8s.io/v1`, and one storage: the same fields under other names.

use serde_json::{Map, Value};

use kube_schema::names;

use crate::object::{cause::Cause, document::Document};

/// The name in `v1`, and the name in `events.k8s.io/v1`.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];
/// The greatest length of an event's text in bytes.
const MAX_NOTE_BYTES: usize = 1024;

pub(crate) fn to_events_group(event: &mut Document) {
    rename(event, |core, events| (core, events));
    for key in ["reportingController", "reportingInstance"] {
        if event.get(key).is_some_and(|value| value == "") {
            event.remove(key);
        }
    }
}

pub(crate) fn to_core_group(event: &mut Document) {
    rename(event, |core, events| (events, core));
}

fn rename(event: &mut Document, order: impl Fn(&'static str, &'static str) -> (&'static str, &'static str)) {
    for (core, events) in RENAMED {
        let (from, to) = order(core, events);
        if let Some(value) = event.remove(from) {
            event.insert(to, value);
        }
    }
}

/// Validates a new event in its stored form. As in a real server, `v1` events get few checks.
pub(crate) fn validate(event: &Document, from_events_group: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    let text = |key: &str| event.text(key);
    let is_new = !text("eventTime").is_empty();
    let own = event.meta_text("namespace");
    let about = event
        .get("involvedObject")
        .and_then(|about| about.get("namespace"));
    let about = about.and_then(Value::as_str).unwrap_or_default();
    let fits = if about.is_empty() {
        own == "default" || (is_new && own == "kube-system")
    } else {
        about == own
    };
    if !fits {
        causes.push(Cause::invalid_text(
            "involvedObject.namespace",
            about,
            "does not match event.namespace",
        ));
    }
    if is_new {
        let controller = if from_events_group {
            "reportingController"
        } else {
            "reportingComponent"
        };
        let name = text("reportingComponent");
        if name.is_empty() {
            causes.push(Cause::required(controller, ""));
        }
        for why in names::qualified(name) {
            causes.push(Cause::invalid_text(controller, name, &why));
        }
        for key in ["reportingInstance", "action", "reason"] {
            if text(key).is_empty() {
                causes.push(Cause::required(key, ""));
            }
        }
        if text("message").len() > MAX_NOTE_BYTES {
            let detail = format!("can have at most {MAX_NOTE_BYTES} characters");
            causes.push(Cause::invalid_text("message", "", &detail));
        }
    }
    if !from_events_group {
        return causes;
    }
    if !is_new {
        causes.push(Cause::required("eventTime", ""));
    }
    if !matches!(text("type"), "Normal" | "Warning") {
        let detail = format!("has invalid value: {}", text("type"));
        causes.push(Cause::invalid_text("type", "", &detail));
    }
    causes
}

/// Rejects changes through `events.k8s.io`, where every field except the series is immutable.
pub(crate) fn validate_update(new: &Document, old: &Document) -> Vec<Cause> {
    let fixed = [
        ("involvedObject", "involvedObject"),
        ("reason", "reason"),
        ("message", "message"),
        ("source", "source"),
        ("firstTimestamp", "firstTimestamp"),
        ("lastTimestamp", "lastTimestamp"),
        ("count", "count"),
        ("type", "type"),
        ("action", "action"),
        ("related", "related"),
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ];
    fixed
        .into_iter()
        .filter(|(key, _)| new.get(key) != old.get(key))
        .map(|(key, field)| {
            let value = new.get(key).cloned().unwrap_or_default();
            Cause::invalid(field, &value, "field is immutable")
        })
        .collect()
}

/// Sets the members that a `v1` event always has.
pub(crate) fn set_defaults(event: &mut Document) {
    let mut default = |key: &str, value: fn() -> Value| {
        if !event.contains_key(key) {
            event.insert(key, value());
        }
    };
    for key in ["reportingComponent", "reportingInstance"] {
        default(key, || Value::from(""));
    }
    for key in ["eventTime", "firstTimestamp", "lastTimestamp"] {
        default(key, || Value::Null);
    }
    default("source", || Value::Object(Map::new()));
}
