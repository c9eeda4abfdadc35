//! Merge patches (RFC 7386).

use serde_json::{Map, Value};

/// Returns the merge patch that turns `old` into `new` (RFC 7386).
pub(super) fn difference(old: &Value, new: Value) -> Value {
    let (old, new) = match (old, new) {
        (Value::Object(old), Value::Object(new)) => (old, new),
        (_, new) => return new,
    };
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new {
        match old.get(&key) {
            Some(before) if *before == value => {}
            Some(before) => {
                patch.insert(key, difference(before, value));
            }
            None => {
                patch.insert(key, value);
            }
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_contains_only_the_changes() {
        let old = json!({"a": 1, "b": {"c": 1, "d": 2}, "e": [1, 2], "f": {}});
        let new = json!({"a": 1, "b": {"c": 3}, "e": [2], "f": {}, "g": {"h": {}}});
        assert_eq!(
            difference(&old, new),
            json!({"b": {"c": 3, "d": null}, "e": [2], "g": {"h": {}}})
        );
        assert_eq!(difference(&old, old.clone()), json!({}));
    }
}
