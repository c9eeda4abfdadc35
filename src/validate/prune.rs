//! Removes from an object the values that its schema forbids, so that the rest of it can be checked.

use kube_schema::{Schema, Type, field, item};
use serde_json::Value;

use crate::api::schema::object_meta;

/// Removes from an object the values that would keep it from being decoded. Returns the paths of the removed values.
///
/// Nulls in objects and maps are removed as well, as in the API server, but are not among the paths. Each removed value
/// has an error from [`check`](super::schema::check). [`is_consequence_of_pruning`] finds errors that come only from
/// the absence of a removed value.
pub(super) fn prune_invalid_fields(schema: &Schema, object: &mut Value) -> Vec<String> {
    let mut removed = Vec::new();
    prune_value(schema, object, "", &mut removed);
    if let Some(metadata) = object.get_mut("metadata") {
        let schema = object_meta();
        if schema.fits(metadata) {
            prune_value(schema, metadata, "metadata", &mut removed);
        } else {
            *metadata = Value::Object(serde_json::Map::new());
            removed.push("metadata".to_owned());
        }
    }
    removed
}

/// Returns true if an error at `path` may come only from the absence of one of the `removed` fields. Its path is
/// within such a field, or is the field's parent or grandparent.
pub(super) fn is_consequence_of_pruning(path: &str, removed: &[String]) -> bool {
    removed.iter().any(|removed| {
        let around = parent(removed);
        [removed.as_str(), around, parent(around)].contains(&path)
            || path
                .strip_prefix(removed.as_str())
                .is_some_and(|rest| rest.starts_with(['.', '[']))
    })
}

fn parent(path: &str) -> &str {
    path.rfind(['.', '[']).map_or("", |end| &path[..end])
}

fn prune_value(schema: &Schema, value: &mut Value, path: &str, removed: &mut Vec<String>) {
    match value {
        Value::Object(members) => members.retain(|key, member| {
            let Some(schema) = schema.member(key) else {
                return true;
            };
            if member.is_null() && !schema.is_nullable() {
                return false;
            }
            let at = field(path, key);
            if schema.fits(member) {
                prune_value(schema, member, &at, removed);
                return true;
            }
            removed.push(at);
            false
        }),
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return };
            for (n, value) in items.iter_mut().enumerate() {
                let at = item(path, n);
                if schema.fits(value) {
                    prune_value(schema, value, &at, removed);
                } else {
                    // The index of the other items must not change.
                    *value = empty(schema);
                    removed.push(at);
                }
            }
        }
        _ => {}
    }
}

fn empty(schema: &Schema) -> Value {
    match schema.type_() {
        Some(Type::Object) => Value::Object(serde_json::Map::new()),
        Some(Type::Array) => Value::Array(Vec::new()),
        Some(Type::String) => "".into(),
        Some(Type::Boolean) => false.into(),
        _ => 0.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_that_do_not_fit_are_pruned() {
        let schema = Schema::new(&json!({"type": "object", "properties": {
            "count": {"type": "integer", "format": "int32"},
            "name": {"type": "string"},
            "maybe": {"type": "string", "nullable": true},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"on": {"type": "boolean"}}}},
        }}));
        let mut object = json!({
            "metadata": {"name": 5, "labels": {"a": 1, "b": "2"}},
            "count": 3_000_000_000_u64, "name": null, "maybe": null, "other": null,
            "labels": {"a": null, "b": "c"}, "list": ["x", {"on": "yes"}],
        });
        let removed = prune_invalid_fields(&schema, &mut object);
        assert_eq!(
            object,
            json!({
                "metadata": {"labels": {"b": "2"}},
                "maybe": null, "other": null, "labels": {"b": "c"}, "list": [{}, {}],
            })
        );
        let mut paths = removed.clone();
        paths.sort();
        assert_eq!(
            paths,
            [
                "count",
                "list[0]",
                "list[1].on",
                "metadata.labels.a",
                "metadata.name"
            ]
        );
        let of = |type_: &str| json!({"type": "array", "items": {"type": type_}});
        let types = ["object", "array", "string", "boolean", "integer", "number"];
        let lists: serde_json::Map<String, Value> = types.iter().map(|t| ((*t).to_owned(), of(t))).collect();
        let schema = Schema::new(&json!({"type": "object", "properties": lists}));
        let mut object = Value::Object(types.iter().map(|t| ((*t).to_owned(), json!([null]))).collect());
        assert_eq!(prune_invalid_fields(&schema, &mut object).len(), types.len());
        let empty = json!({"object": [{}], "array": [[]], "string": [""], "boolean": [false], "integer": [0], "number": [0]});
        assert_eq!(object, empty, "the others keep their numbers");
        assert!(
            is_consequence_of_pruning("list[0].on", &removed)
                && is_consequence_of_pruning("list", &removed)
                && is_consequence_of_pruning("count", &removed)
        );
        assert!(
            !is_consequence_of_pruning("counter", &removed)
                && !is_consequence_of_pruning("labels.b", &removed)
        );
    }
}
