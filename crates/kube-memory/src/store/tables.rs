//! The JSON of tables.

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::kinds::Target;
use crate::request::Include;
use crate::store::object::{Object, encode, metadata_only};
use crate::table::{cells, column_definitions};

/// Returns the table of these objects, with this metadata of the list.
pub(crate) fn table<'o>(
    target: &Target,
    objects: impl Iterator<Item = &'o Object>,
    metadata: Map<String, Value>,
    include: Include,
    now: Timestamp,
) -> Bytes {
    let rows: Vec<Value> = objects.map(|object| row(target, object, include, now)).collect();
    encode(&json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": column_definitions(target),
        "rows": rows,
    }))
}

/// Returns the table of one object.
pub(crate) fn table_of_one(target: &Target, object: &Object, include: Include, now: Timestamp) -> Bytes {
    let mut metadata = Map::new();
    let version = object.resource_version().to_string();
    metadata.insert("resourceVersion".to_owned(), Value::from(version));
    table(target, std::iter::once(object), metadata, include, now)
}

fn row(target: &Target, object: &Object, include: Include, now: Timestamp) -> Value {
    let converted;
    let value = match target.is_stored_version() {
        true => object.value(),
        false => {
            converted = target.in_request_version(object.document()).to_value();
            &converted
        }
    };
    let (cells, conditions) = cells(target, value, now);
    let mut row = json!({"cells": cells});
    if let Some(conditions) = conditions {
        row["conditions"] = conditions;
    }
    row["object"] = match include {
        Include::None => Value::Null,
        Include::Metadata => metadata_only(object),
        Include::Object => value.clone(),
    };
    row
}
