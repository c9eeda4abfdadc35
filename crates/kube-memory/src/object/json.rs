//! Helpers for JSON values: lists that may be missing, and merge patches.

use serde_json::{Map, Value};

/// Returns the items of an array; none for any other value.
pub(crate) fn array(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

/// Applies a merge patch (RFC 7396).
pub(crate) fn apply_merge_patch(object: &mut Value, patch: Value) {
    let Value::Object(members) = patch else {
        *object = patch;
        return;
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Some(map) = object.as_object_mut() else { return };
    for (key, value) in members {
        if value.is_null() {
            map.remove(&key);
        } else {
            apply_merge_patch(map.entry(key).or_insert(Value::Null), value);
        }
    }
}

/// Returns the result of a merge patch of a missing value: the patch without nulls.
pub(crate) fn strip_nulls(patch: Value) -> Value {
    let mut object = Value::Null;
    apply_merge_patch(&mut object, patch);
    object
}
