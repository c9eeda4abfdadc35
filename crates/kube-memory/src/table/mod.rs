//! Tables: the form of objects that `kubectl get` asks for. Pure functions of an object, its kind and the time.

mod age;
mod cells;
mod pods;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::{Family, Target, columns};

use age::since;

/// Returns the definitions of the columns of a kind in the version of the request.
pub(crate) fn column_definitions(target: &Target) -> Vec<Value> {
    let column = |name: &str, type_: &str, format: &str, description: &str, priority: i64| {
        json!({
            "name": name, "type": type_, "format": format, "description": description, "priority": priority,
        })
    };
    let built_in = |columns: columns::BuiltInColumns| {
        let columns = columns.iter().map(|(name, type_, priority)| {
            let format = if *name == "Name" { "name" } else { "" };
            column(name, type_, format, "", *priority)
        });
        columns.collect::<Vec<_>>()
    };
    if target.kind.family == Family::Event {
        return built_in(columns::OF_EVENTS);
    }
    let mut all = vec![column("Name", "string", "name", "", 0)];
    match target.columns() {
        [] => all.extend(built_in(columns::of_built_in(&target.kind.kind))),
        custom => all.extend(
            custom
                .iter()
                .map(|c| column(&c.name, &c.type_, &c.format, &c.description, c.priority)),
        ),
    }
    all
}

/// Returns the cells of an object's row, and the conditions of the row if it has some.
pub(crate) fn cells(target: &Target, object: &Value, now: Timestamp) -> (Vec<Value>, Option<Value>) {
    let name = object["metadata"]["name"].clone();
    let custom = target.columns();
    if !custom.is_empty() {
        let values = custom.iter().map(|column| {
            let found = column.path.first(object);
            found.map_or(Value::Null, |value| cell(&column.type_, value, now))
        });
        return (std::iter::once(name).chain(values).collect(), None);
    }
    if target.kind.family == Family::Event {
        return (cells::event(object, now), None);
    }
    let age = || json!(since(&object["metadata"]["creationTimestamp"], now));
    let mut conditions = None;
    let rest = match target.kind.kind.as_str() {
        "Pod" => {
            conditions = pods::completion(object);
            pods::cells(object, now)
        }
        "Service" => cells::service(object, now),
        "Node" => cells::node(object, now),
        "Namespace" => vec![object["status"]["phase"].clone(), age()],
        "ConfigMap" => {
            let entries = cells::length(&object["data"]) + cells::length(&object["binaryData"]);
            vec![json!(entries), age()]
        }
        "Secret" => vec![
            object["type"].clone(),
            json!(cells::length(&object["data"])),
            age(),
        ],
        "ServiceAccount" => vec![json!(cells::length(&object["secrets"])), age()],
        "ResourceQuota" => {
            let [requests, limits] = cells::quota(object);
            vec![json!(requests), json!(limits), age()]
        }
        "Lease" => {
            let holder = object["spec"]["holderIdentity"].as_str().unwrap_or_default();
            vec![json!(holder), age()]
        }
        "CustomResourceDefinition" => vec![object["metadata"]["creationTimestamp"].clone()],
        _ => vec![age()],
    };
    (std::iter::once(name).chain(rest).collect(), conditions)
}

/// Returns the cell of a column of a custom kind. A value of another type has none.
fn cell(type_: &str, value: &Value, now: Timestamp) -> Value {
    match (type_, value) {
        (_, Value::Null) => Value::Null,
        ("date", Value::String(_)) => json!(since(value, now)),
        ("date", _) => Value::Null,
        ("integer", Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => json!(integer),
            #[expect(clippy::cast_possible_truncation, reason = "as the API server does it")]
            (None, Some(number)) => json!(number as i64),
            (None, None) => Value::Null,
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("string", Value::String(_)) => value.clone(),
        ("string", _) => json!(value.to_string()),
        _ => Value::Null,
    }
}
