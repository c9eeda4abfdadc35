//! CRD schemas in which every field has a type, but embedded Kubernetes types have no descriptions.
//!
//! A pod template with its descriptions is 350 KB of JSON. Client-side `kubectl apply` stores the definition in an
//! annotation of at most 256 KB. Without descriptions the template is 55 KB.

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

/// The maximum number of containers of a pod template. The API server needs a bound to estimate the cost of rules over
/// containers.
pub(crate) const MAX_CONTAINERS: u64 = 64;

/// The fields of a pod template's metadata: those of the Go operator's definitions, and one that Go clients write as
/// null.
const TEMPLATE_METADATA: [&str; 6] = [
    "annotations",
    "creationTimestamp",
    "finalizers",
    "labels",
    "name",
    "namespace",
];

/// Returns the schema of a pod template, without descriptions.
pub fn pod_template(_: &mut SchemaGenerator) -> Schema {
    let mut value = lean_value::<PodTemplateSpec>();
    let claim =
        "/properties/spec/properties/volumes/items/properties/ephemeral/properties/volumeClaimTemplate";
    for template in ["", claim] {
        let metadata = value.pointer_mut(&format!("{template}/properties/metadata/properties"));
        if let Some(fields) = metadata.and_then(Value::as_object_mut) {
            // The user cannot set the other fields.
            fields.retain(|field, _| TEMPLATE_METADATA.contains(&field.as_str()));
            // Go clients write null. So do webhooks in Go, and the API server does not drop the nulls of webhooks.
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

/// Returns the schema of type `T`, without descriptions.
pub fn lean<T: JsonSchema>(_: &mut SchemaGenerator) -> Schema {
    Schema::try_from(lean_value::<T>()).unwrap_or_default()
}

/// Returns the schema of a field `managedBy`, whose values are the controllers that may run a job.
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

/// Returns the schema of an object's metadata. Definitions leave it to the API server.
pub(crate) fn object_meta() -> &'static kube_schema::Schema {
    static SCHEMA: LazyLock<kube_schema::Schema> = LazyLock::new(built_in::<ObjectMeta>);
    &SCHEMA
}

/// Returns the schema of a type of Kubernetes.
pub(crate) fn built_in<T: JsonSchema>() -> kube_schema::Schema {
    let mut schema: JSONSchemaProps = serde_json::from_value(lean_value::<T>()).unwrap_or_default();
    for_each(&mut schema, &|schema| {
        if let Some(owned) = schema.properties.as_mut().and_then(|p| p.get_mut("fieldsV1")) {
            // This field mirrors the fields of the object.
            owned.x_kubernetes_preserve_unknown_fields = Some(true);
        }
    });
    tidy(&mut schema);
    kube_schema::Schema::new(&serde_json::to_value(schema).unwrap_or_default())
}

/// Removes from a derived definition the properties that come from Rust types and not from the API.
///
/// `Option` becomes `nullable`, and the API server stores nulls of nullable fields. With a definition made for Go it
/// drops them, and so it does with the result of this function. `serde(default)` becomes an empty default, which the
/// API server would fill in for a missing field, so that `required` had no effect. Empty defaults are removed. The
/// fields `required` of the spec are required; if there are none, those without `serde(default)`.
///
/// The fields of the status keep their descriptions but not their types, so that any status is accepted.
///
/// The definition gets columns for `kubectl get -o wide` after those of the kind: start, end, restarts and failure from
/// the shared status.
pub fn tidy_definition(
    mut definition: CustomResourceDefinition,
    required: &[&str],
) -> CustomResourceDefinition {
    // kubectl uses this name, and the generator for Go never leaves it empty.
    let kind = &definition.spec.names.kind;
    definition.spec.names.list_kind = Some(format!("{kind}List"));
    // The definition of an older operator may have true, which would be kept, and with it no default is allowed.
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
            // An object from a Go client may lack the spec, which validation reports.
            schema.required = None;
            let spec = schema.properties.as_mut().and_then(|p| p.get_mut("spec"));
            if let Some(spec) = spec.filter(|_| !required.is_empty()) {
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

/// Makes a status accept any value in its fields and in unknown fields. A job that was exported and is applied again
/// has its old status, possibly from another operator. The API server ignores that status, and yet would reject the job
/// for an unknown field in it, or in a server-side apply for a field of another type.
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
            // As in pods, because Go clients send null for this field.
            service.default = Some(JSON(Value::String(String::new())));
        }
    });
}

/// Removes the default of `replicas` from the entries of the map of replica specs `spec.<field>`, and sets its
/// description. This is for a kind in which an unset number is not 1 in all roles, because a map has one schema for all
/// roles.
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

/// Removes all descriptions, for a version whose fields are described in another version.
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

/// Removes the keyword `description` from every schema in `value`. Properties of that name are kept.
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
