//! Merge patches of single fields (pure).

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

/// Returns the merge patch that sets the field at `path`, such as `spec.replicaSpecs[0].replicas`, of this version of
/// an object. A list is replaced as a whole, because merge patches have no items.
///
/// # Errors
/// The object has no such list or item.
pub(super) fn patch(object: &Value, path: &str, value: Value) -> anyhow::Result<Value> {
    let segments: Vec<&str> = path
        .split(['.', '['])
        .map(|part| part.trim_end_matches(']'))
        .collect();
    let mut patch = nested(object, &segments, value).with_context(|| path.to_owned())?;
    // The API server refuses the patch if the object has changed since it was read.
    patch["metadata"] = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
    Ok(patch)
}

fn nested(stored: &Value, segments: &[&str], value: Value) -> anyhow::Result<Value> {
    let Some((first, rest)) = segments.split_first() else {
        return Ok(value);
    };
    match stored {
        Value::Array(items) => {
            let mut items = items.clone();
            let item = first.parse::<usize>().ok().and_then(|index| items.get_mut(index));
            let Some(item) = item else {
                bail!("no item {first}");
            };
            let change = nested(item, rest, value)?;
            json_patch::merge(item, &change);
            Ok(Value::Array(items))
        }
        _ => {
            let below = nested(stored.get(*first).unwrap_or(&Value::Null), rest, value)?;
            Ok(Value::Object(Map::from_iter([((*first).to_owned(), below)])))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_field_is_in_the_patch() {
        let object = json!({"metadata": {"resourceVersion": "7"}, "spec": {"runPolicy": null, "other": 1}});
        let patch = patch(&object, "spec.runPolicy.suspend", json!(true)).unwrap();
        assert_eq!(
            patch,
            json!({"metadata": {"resourceVersion": "7"}, "spec": {"runPolicy": {"suspend": true}}})
        );
    }

    #[test]
    fn a_list_is_replaced_as_a_whole() {
        let object = json!({"metadata": {"resourceVersion": "7"}, "spec": {"specs": [{"a": 1}, {"replicas": 1, "b": 2}]}});
        let changed = patch(&object, "spec.specs[1].replicas", json!(3)).unwrap();
        assert_eq!(
            changed["spec"],
            json!({"specs": [{"a": 1}, {"replicas": 3, "b": 2}]})
        );
        assert!(patch(&object, "spec.specs[2].replicas", json!(3)).is_err());
    }
}
