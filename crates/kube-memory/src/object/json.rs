//! Helpers for JSON values: lists that may be missing, and merge patches.

use serde_json::Value;

/// Returns the items of an array; none for any other value.
pub(crate) fn array(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

/// Returns the result of a merge patch of a missing value: the patch without nulls.
pub(crate) fn strip_nulls(patch: &Value) -> Value {
    let mut object = Value::Null;
    json_patch::merge(&mut object, patch);
    object
}
