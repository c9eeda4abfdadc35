//! Lean CRD schemas: typed to the last field, without the descriptions of embedded Kubernetes types.
//!
//! A pod template with its descriptions is 350 KB of JSON, more than the 256 KB that client-side
//! `kubectl apply` can store in its annotation; without them it is 55 KB.

use std::sync::LazyLock;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray,
    JSONSchemaPropsOrBool,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::Value;

use super::RunPolicy;

/// The most containers a pod template may have. A bound that the API server needs to estimate the
/// cost of rules over containers.
pub(crate) const MAX_CONTAINERS: u64 = 64;

/// What of the metadata a pod template may have: as in the definitions of the Go operator, and what Go
/// clients write as null.
const TEMPLATE_METADATA: [&str; 6] = [
    "annotations",
    "creationTimestamp",
    "finalizers",
    "labels",
    "name",
    "namespace",
];

/// The schema of a pod template, without descriptions.
pub fn pod_template(_: &mut SchemaGenerator) -> Schema {
    let mut value = lean_value::<PodTemplateSpec>();
    let claim =
        "/properties/spec/properties/volumes/items/properties/ephemeral/properties/volumeClaimTemplate";
    for template in ["", claim] {
        let metadata = value.pointer_mut(&format!("{template}/properties/metadata/properties"));
        if let Some(fields) = metadata.and_then(Value::as_object_mut) {
            // The others are not the author's to set.
            fields.retain(|field, _| TEMPLATE_METADATA.contains(&field.as_str()));
            // Go writes null, and so do webhooks that are written in it, behind which the API server drops none.
            fields.insert(
                TEMPLATE_METADATA[1].to_owned(),
                serde_json::json!({"x-kubernetes-preserve-unknown-fields": true}),
            );
        }
    }
    if let Some(containers) = value.pointer_mut("/properties/spec/properties/containers") {
        containers["minItems"] = 1.into();
        containers["maxItems"] = MAX_CONTAINERS.into();
    }
    Schema::try_from(value).unwrap_or_default()
}

/// The schema of type `T`, without descriptions.
pub fn lean<T: JsonSchema>(_: &mut SchemaGenerator) -> Schema {
    Schema::try_from(lean_value::<T>()).unwrap_or_default()
}

/// The schema of a field `managedBy`: the controllers that may run a job.
pub fn managed_by(_: &mut SchemaGenerator) -> Schema {
    let [own, other] = RunPolicy::MANAGERS;
    schemars::json_schema!({ "type": "string", "enum": [own, other, ""] })
}

fn lean_value<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::openapi3()
        .with(|s| s.inline_subschemas = true)
        .into_generator();
    let mut value = generator.into_root_schema_for::<T>().to_value();
    strip_value(&mut value);
    if let Some(root) = value.as_object_mut() {
        root.remove("$schema");
        root.remove("title");
    }
    value
}

/// The schema of an object's metadata, which a definition leaves to the API server.
pub(crate) fn object_meta() -> &'static kube_schema::Schema {
    static SCHEMA: LazyLock<kube_schema::Schema> = LazyLock::new(|| {
        let mut schema: JSONSchemaProps =
            serde_json::from_value(lean_value::<ObjectMeta>()).unwrap_or_default();
        for_each(&mut schema, &|schema| {
            if let Some(owned) = schema.properties.as_mut().and_then(|p| p.get_mut("fieldsV1")) {
                // It mirrors the object's own fields.
                owned.x_kubernetes_preserve_unknown_fields = Some(true);
            }
        });
        tidy(&mut schema);
        kube_schema::Schema::new(&serde_json::to_value(schema).unwrap_or_default())
    });
    &SCHEMA
}

/// Takes out of a derived definition what Rust types say about themselves and the API does not.
///
/// `Option` becomes `nullable`, with which the API server keeps nulls, where a definition made for
/// Go has them dropped. `serde(default)` becomes an empty default, which would be filled in where
/// the user wrote nothing, and make `required` vain: the fields of the spec that every job needs are
/// `required` instead.
///
/// A status takes anything: its fields are described, and have no types.
///
/// Behind the kind's own columns it gets those that `kubectl get -o wide` shows of every job: what the
/// shared status tells of start, end, restarts and failure.
pub fn tidy_definition(
    mut definition: CustomResourceDefinition,
    required: &[&str],
) -> CustomResourceDefinition {
    // kubectl reads it as it is; Go's generator writes none that is empty.
    let kind = &definition.spec.names.kind;
    definition.spec.names.list_kind = Some(format!("{kind}List"));
    // One that an older operator left keeps true otherwise, and then no default is taken.
    definition.spec.preserve_unknown_fields = Some(false);
    for version in &mut definition.spec.versions {
        version
            .additional_printer_columns
            .get_or_insert_default()
            .extend(wide_columns());
        let schema = version
            .schema
            .as_mut()
            .and_then(|s| s.open_api_v3_schema.as_mut());
        if let Some(schema) = schema {
            schema.title = None;
            // An object that Go wrote may lack the spec; validation tells its owner.
            schema.required = None;
            if let Some(spec) = schema.properties.as_mut().and_then(|p| p.get_mut("spec")) {
                spec.required = Some(required.iter().map(|&field| field.to_owned()).collect());
            }
            tidy(schema);
            if let Some(status) = schema.properties.as_mut().and_then(|p| p.get_mut("status")) {
                open(status);
            }
        }
    }
    definition
}

/// Says of a status what its fields are for, and takes anything in them, as in fields that are not known. A job that somebody
/// saved and applies again has the status that it had, maybe of another operator's making. The API server takes none from
/// there, and yet refuses the job for an unknown field in it, and in a server-side apply for a field of another type.
fn open(status: &mut JSONSchemaProps) {
    let any = |schema: &JSONSchemaProps| JSONSchemaProps {
        description: schema.description.clone(),
        x_kubernetes_preserve_unknown_fields: Some(true),
        ..JSONSchemaProps::default()
    };
    let fields = status.properties.take().into_iter().flatten();
    *status = JSONSchemaProps {
        properties: Some(fields.map(|(field, schema)| (field, any(&schema))).collect()),
        ..any(status)
    };
}

fn wide_columns() -> [CustomResourceColumnDefinition; 4] {
    [
        ("Started", "date", ".status.startTime"),
        ("Finished", "date", ".status.completionTime"),
        ("Restarts", "integer", ".status.restartCount"),
        ("Failure", "string", ".status.failure.reason"),
    ]
    .map(|(name, type_, json_path)| CustomResourceColumnDefinition {
        name: name.to_owned(),
        type_: type_.to_owned(),
        json_path: json_path.to_owned(),
        priority: Some(1),
        ..CustomResourceColumnDefinition::default()
    })
}

fn tidy(schema: &mut JSONSchemaProps) {
    for_each(schema, &|schema| {
        schema.nullable = None;
        if let Some(words) = &mut schema.enum_ {
            words.retain(|word| !word.0.is_null());
        }
        schema.default = schema.default.take().filter(|default| !is_empty(&default.0));
        let probe = schema
            .properties
            .as_mut()
            .and_then(|fields| fields.get_mut("grpc"));
        let grpc = probe.and_then(|grpc| grpc.properties.as_mut()?.get_mut("service"));
        if let Some(service) = grpc {
            // As in pods, where Go's clients send null for it.
            service.default = Some(JSON(Value::String(String::new())));
        }
    });
}

/// Takes the default of `replicas` out of the entries of the map of replica specs that is `spec.<field>`, and gives
/// it `description`. For a kind in which an unset number is not 1 in all roles: a map has one schema for all of its roles.
pub fn without_default_replicas(definition: &mut CustomResourceDefinition, field: &str, description: &str) {
    for version in &mut definition.spec.versions {
        let schema = version
            .schema
            .as_mut()
            .and_then(|s| s.open_api_v3_schema.as_mut());
        let spec = schema.and_then(|s| s.properties.as_mut()?.get_mut("spec"));
        let specs = spec.and_then(|s| s.properties.as_mut()?.get_mut(field));
        let entry = specs.and_then(|s| s.additional_properties.as_mut());
        if let Some(JSONSchemaPropsOrBool::Schema(entry)) = entry
            && let Some(replicas) = entry.properties.as_mut().and_then(|p| p.get_mut("replicas"))
        {
            replicas.default = None;
            replicas.description = Some(description.to_owned());
        }
    }
}

/// Removes all descriptions, for a version whose fields are described in another.
pub fn strip_descriptions(schema: &mut JSONSchemaProps) {
    for_each(schema, &|schema| schema.description = None);
}

fn for_each(schema: &mut JSONSchemaProps, change: &impl Fn(&mut JSONSchemaProps)) {
    change(schema);
    for property in schema.properties.iter_mut().flat_map(|p| p.values_mut()) {
        for_each(property, change);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(schema)) = &mut schema.additional_properties {
        for_each(schema, change);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(schema)) = &mut schema.items {
        for_each(schema, change);
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Removes the keyword `description` from every schema in `value`, and leaves properties of that
/// name alone.
fn strip_value(value: &mut Value) {
    match value {
        Value::Object(schema) => {
            if schema.get("description").is_some_and(Value::is_string) {
                schema.remove("description");
            }
            for (key, child) in schema {
                if key == "properties" {
                    for property in child.as_object_mut().into_iter().flat_map(|p| p.values_mut()) {
                        strip_value(property);
                    }
                } else {
                    strip_value(child);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(strip_value),
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
        strip_value(&mut schema);
        assert_eq!(schema, json!({"properties": {"description": {"type": "string"}}}));
    }
}
