//! The fields that an API server drops, and the defaults that it sets.

use serde_json::Value;

use crate::{is_type_or_metadata, path::At, schema::Schema};

impl Schema {
    /// Removes the members that the schema does not have from an object, and returns their paths.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut pruned = Vec::new();
        self.prune_at(object, At::Here, true, &mut pruned);
        pruned
    }

    fn prune_at(&self, value: &mut Value, at: At<'_, '_>, is_resource: bool, pruned: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                if !self.is_open() {
                    map.retain(|key, _| {
                        let known =
                            self.properties.contains_key(key) || (is_resource && is_type_or_metadata(key));
                        if !known {
                            pruned.push(at.member(key).path().to_string());
                        }
                        known
                    });
                }
                for (key, member) in map.iter_mut() {
                    if is_resource && key == "metadata" {
                        continue;
                    }
                    if let Some(schema) = self.member(key) {
                        schema.prune_at(member, at.member(key), schema.embedded, pruned);
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                for (index, item) in items.iter_mut().enumerate() {
                    schema.prune_at(item, at.item(index), schema.embedded, pruned);
                }
            }
            _ => {}
        }
    }

    /// Sets defaults in existing objects. A missing object without a default of its own stays missing. A null that
    /// the schema does not allow is removed, or replaced by the default.
    pub fn set_defaults(&self, value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.retain(|name, member| {
                    !member.is_null()
                        || self
                            .member(name)
                            .is_none_or(|schema| schema.nullable || schema.default.is_some())
                });
                for (name, schema) in &self.properties {
                    let absent = map
                        .get(name)
                        .is_none_or(|member| member.is_null() && !schema.nullable);
                    if absent && let Some(default) = &schema.default {
                        map.insert(name.clone(), default.clone());
                    }
                }
                for (key, member) in map.iter_mut() {
                    if let Some(schema) = self.member(key) {
                        schema.set_defaults(member);
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                items.iter_mut().for_each(|item| schema.set_defaults(item));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_fields_are_pruned_and_defaults_are_filled_in() {
        let schema = Schema::new(&json!({"type": "object", "properties": {
            "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"default": 1}}}},
            "free": {"x-kubernetes-preserve-unknown-fields": true, "properties": {"part": {"type": "object"}}},
            "map": {"additionalProperties": {"type": "object"}}, "any": {"additionalProperties": true},
            "pod": {"x-kubernetes-embedded-resource": true}, "set": {"default": {}, "properties": {"n": {"default": 2}}},
            "kept": {"nullable": true, "default": 3}, "filled": {"default": 4}, "dropped": {"type": "string"},
            "empty": {"nullable": true},
        }}));
        let mut object = json!({
            "kind": "K", "metadata": {"name": "n"}, "odd": 1, "list": [{"x": 1}, {"n": 0}],
            "free": {"a": {"b": 1}, "part": {"x": 1}}, "map": {"a": {"x": 1}, "b": null}, "any": {"a": null},
            "pod": {"kind": "Pod", "x": 1}, "kept": null, "filled": null, "dropped": null,
            "empty": null,
        });
        let mut pruned = schema.prune(&mut object);
        pruned.sort();
        assert_eq!(pruned, ["free.part.x", "list[0].x", "map.a.x", "odd", "pod.x"]);
        schema.set_defaults(&mut object);
        assert_eq!(
            object,
            json!({
                "kind": "K", "metadata": {"name": "n"}, "list": [{"n": 1}, {"n": 0}],
                "free": {"a": {"b": 1}, "part": {}}, "map": {"a": {}}, "any": {"a": null},
                "pod": {"kind": "Pod"}, "set": {"n": 2}, "kept": null, "filled": 4, "empty": null,
            })
        );
    }
}
