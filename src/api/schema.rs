//! Lean CRD schemas: typed to the last field, without the descriptions of embedded Kubernetes types.
//!
//! A pod template with its descriptions is 350 KB of JSON, more than the 256 KB that client-side
//! `kubectl apply` can store in its annotation; without them it is 55 KB.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::Value;

/// The most containers a pod template may have. A bound that the API server needs to estimate the
/// cost of rules over containers.
pub const MAX_CONTAINERS: u64 = 64;

/// The schema of a pod template, without descriptions.
pub fn pod_template(_: &mut SchemaGenerator) -> Schema {
    let generator = SchemaSettings::openapi3()
        .with(|s| s.inline_subschemas = true)
        .into_generator();
    let mut value = generator.into_root_schema_for::<PodTemplateSpec>().to_value();
    strip_descriptions(&mut value);
    if let Some(root) = value.as_object_mut() {
        root.remove("$schema");
        root.remove("title");
    }
    if let Some(containers) = value.pointer_mut("/properties/spec/properties/containers") {
        containers["minItems"] = 1.into();
        containers["maxItems"] = MAX_CONTAINERS.into();
    }
    Schema::try_from(value).unwrap_or_default()
}

/// The schema of type `T`, without descriptions.
pub fn lean<T: JsonSchema>(_: &mut SchemaGenerator) -> Schema {
    let generator = SchemaSettings::openapi3()
        .with(|s| s.inline_subschemas = true)
        .into_generator();
    let mut value = generator.into_root_schema_for::<T>().to_value();
    strip_descriptions(&mut value);
    Schema::try_from(value).unwrap_or_default()
}

/// Removes the keyword `description` from every schema in `value`, and leaves properties of that
/// name alone.
fn strip_descriptions(value: &mut Value) {
    match value {
        Value::Object(schema) => {
            if schema.get("description").is_some_and(Value::is_string) {
                schema.remove("description");
            }
            for (key, child) in schema {
                if key == "properties" {
                    for property in child.as_object_mut().into_iter().flat_map(|p| p.values_mut()) {
                        strip_descriptions(property);
                    }
                } else {
                    strip_descriptions(child);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(strip_descriptions),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_property_called_description_stays() {
        let mut schema = json!({"description": "gone", "properties": {"description": {"type": "string", "description": "gone"}}});
        strip_descriptions(&mut schema);
        assert_eq!(schema, json!({"properties": {"description": {"type": "string"}}}));
    }
}
