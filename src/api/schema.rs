//! CRD schemas in which every field has a type, but embedded Kubernetes types have no descriptions.
//!
//! A pod template with its descriptions is 350 KB of JSON. Client-side `kubectl apply` stores the definition in an
//! annotation of at most 256 KB. Without descriptions the template is 55 KB.

use std::sync::LazyLock;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, CustomResourceDefinitionVersion, JSON,
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{CustomResource, CustomResourceExt};
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde::{Deserialize, Serialize};
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

/// The title of the schema that [`tidy_definition`] replaces by that of a pod template.
const POD_TEMPLATE: &str = "PodTemplateSpec";

/// Returns a schema of any object, which [`tidy_definition`] replaces by that of a pod template without descriptions. The
/// derived definition of each kind rewrites all schemas in it, at each level again, which for a pod template takes 25 ms.
pub fn pod_template(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({
        "title": POD_TEMPLATE, "type": "object", "x-kubernetes-preserve-unknown-fields": true
    })
}

/// A kind whose definition has the schema of a pod template in the form of definitions.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "schema.invalid", version = "v1", kind = "TemplateHolder")]
struct HolderSpec {
    #[schemars(schema_with = "whole_pod_template")]
    template: PodTemplateSpec,
}

/// Returns the schema of a pod template in the form of definitions.
fn defined_pod_template() -> &'static JSONSchemaProps {
    static SCHEMA: LazyLock<JSONSchemaProps> = LazyLock::new(|| {
        let mut versions = TemplateHolder::crd().spec.versions;
        let schema = versions.pop().and_then(|version| version.schema);
        let spec = schema.and_then(|schema| schema.open_api_v3_schema?.properties?.remove("spec"));
        let template = spec.and_then(|spec| spec.properties?.remove("template"));
        template.unwrap_or_default()
    });
    &SCHEMA
}

fn whole_pod_template(_: &mut SchemaGenerator) -> Schema {
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

/// Returns the schema of a version of a definition, to change it.
pub fn schema(version: &mut CustomResourceDefinitionVersion) -> Option<&mut JSONSchemaProps> {
    version.schema.as_mut()?.open_api_v3_schema.as_mut()
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
/// The fields of the status keep their descriptions and types, but may be null or missing, and unknown fields are kept,
/// so that the statuses of other operators are accepted. Descriptions have one line per paragraph, because `kubectl
/// explain` keeps line breaks.
///
/// The definition gets columns for `kubectl get` after those of the kind, from the shared status: ready replicas, the
/// reason why a job waits, and its failure; with `-o wide` also its progress, the age of its last output, start, end and
/// restarts.
pub fn tidy_definition(
    mut definition: CustomResourceDefinition,
    required: &[&str],
) -> CustomResourceDefinition {
    // kubectl uses this name, and the generator for Go never leaves it empty.
    let kind = &definition.spec.names.kind;
    definition.spec.names.list_kind = Some(format!("{kind}List"));
    for version in &mut definition.spec.versions {
        let columns = version.additional_printer_columns.get_or_insert_default();
        let has_age = columns.iter().any(|column| column.name == "Age");
        columns.extend(
            shared_columns()
                .into_iter()
                .filter(|column| !has_age || column.name != "Age"),
        );
        if let Some(schema) = schema(version) {
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

/// Reduces a status to types and descriptions: each value may be null, and objects may lack fields and have others. A job
/// that was exported and is applied again has its old status, possibly from another operator. The API server ignores that
/// status, and yet would reject the job for an unknown field in it.
fn open(status: &mut JSONSchemaProps) {
    for_each(status, &|schema| {
        // A map has a schema for all of its values, beside which the API server accepts no other.
        let keeps_unknown = schema.properties.is_some() || schema.type_.is_none();
        *schema = JSONSchemaProps {
            description: schema.description.take(),
            nullable: schema.type_.is_some().then_some(true),
            type_: schema.type_.take(),
            properties: schema.properties.take(),
            additional_properties: schema.additional_properties.take(),
            items: schema.items.take(),
            x_kubernetes_preserve_unknown_fields: keeps_unknown.then_some(true),
            ..JSONSchemaProps::default()
        };
    });
}

/// Returns a description with one line per paragraph and list item.
fn joined(description: &str) -> String {
    let mut text = String::with_capacity(description.len());
    for line in description.lines() {
        let begins_item = ["- ", "* "]
            .iter()
            .any(|mark| line.trim_start().starts_with(mark));
        let continues = !text.is_empty() && !text.ends_with('\n') && !line.trim().is_empty() && !begins_item;
        match continues {
            true => text.push(' '),
            false if text.is_empty() => {}
            false => text.push('\n'),
        }
        text.push_str(line.trim());
    }
    text
}

/// Returns the columns of `kubectl get` that all kinds have. Those with priority 1 show with `-o wide`. The age is the last
/// one, as in other tables, unless the kind has this column itself.
fn shared_columns() -> [CustomResourceColumnDefinition; 9] {
    [
        ("Ready", "string", ".status.ready", 0),
        ("Reason", "string", ".status.waitingReason", 0),
        ("Failure", "string", ".status.failure.summary", 0),
        ("Progress", "string", ".status.progress.summary", 1),
        ("Output", "date", ".status.progress.at", 1),
        ("Started", "date", ".status.startTime", 1),
        ("Finished", "date", ".status.completionTime", 1),
        ("Restarts", "integer", ".status.restartCount", 1),
        ("Age", "date", ".metadata.creationTimestamp", 0),
    ]
    .map(
        |(name, type_, json_path, priority)| CustomResourceColumnDefinition {
            name: name.to_owned(),
            type_: type_.to_owned(),
            json_path: json_path.to_owned(),
            // The API server does not store 0, so each apply would change it.
            priority: Some(priority).filter(|priority| *priority != 0),
            ..CustomResourceColumnDefinition::default()
        },
    )
}

/// Returns the schema of a field of any type, for state that only the controller reads.
pub fn any(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}

fn tidy(schema: &mut JSONSchemaProps) {
    for_each(schema, &|schema| {
        if schema.title.as_deref() == Some(POD_TEMPLATE) {
            *schema = JSONSchemaProps {
                description: schema.description.take(),
                ..defined_pod_template().clone()
            };
        }
        schema.nullable = None;
        schema.description = schema.description.as_deref().map(joined);
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
        let spec = schema(version).and_then(|s| s.properties.as_mut()?.get_mut("spec"));
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
    fn descriptions_have_one_line_per_paragraph_and_item() {
        let text = "One\nparagraph.\n\nAnother:\n\n* an\n  item\n* one more";
        assert_eq!(
            joined(text),
            "One paragraph.\n\nAnother:\n\n* an item\n* one more"
        );
    }

    /// Whatever another operator wrote stays valid.
    #[test]
    fn a_status_has_types_but_requires_nothing() {
        let mut status: JSONSchemaProps = serde_json::from_value(json!({
            "type": "object", "required": ["list"], "properties": {
                "list": {"type": "array", "items": {"type": "object", "required": ["kind"], "properties": {
                    "kind": {"type": "string", "enum": ["A"], "description": "The kind."},
                }}},
                "map": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0.0, "format": "int32"}},
                "free": {"x-kubernetes-preserve-unknown-fields": true},
            },
        }))
        .unwrap();
        open(&mut status);
        let of_item = json!({
            "type": "object", "nullable": true, "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"kind": {"type": "string", "nullable": true, "description": "The kind."}},
        });
        let expected = json!({
            "type": "object", "nullable": true, "x-kubernetes-preserve-unknown-fields": true, "properties": {
                "list": {"type": "array", "nullable": true, "items": of_item},
                "map": {"type": "object", "nullable": true, "additionalProperties": {"type": "integer", "nullable": true}},
                "free": {"x-kubernetes-preserve-unknown-fields": true},
            },
        });
        assert_eq!(serde_json::to_value(status).unwrap(), expected);
    }

    #[test]
    fn a_property_called_description_stays() {
        let mut schema = json!({"description": "gone", "properties": {"description": {"type": "string", "description": "gone"}}});
        strip_value(&mut schema);
        assert_eq!(schema, json!({"properties": {"description": {"type": "string"}}}));
    }
}
