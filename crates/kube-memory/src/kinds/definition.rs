//! Converts CustomResourceDefinitions to the kinds that they describe.

use std::sync::Arc;

use kube_schema::Schema;
use serde_json::{Value, json};

#[cfg(feature = "rules")]
use crate::kinds::rules::Rules;
use crate::kinds::{Description, Family, Kind, Version, columns::Column, scale::ScalePaths};
use crate::object::{cause::Cause, document::Document, json};

/// The finalizer that keeps a definition until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    path.iter()
        .try_fold(value, |value, key| value.get(key))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn versions(definition: &Value) -> impl Iterator<Item = &Value> {
    json::array(definition.get("spec").and_then(|spec| spec.get("versions")))
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or_default()
}

/// Sets the defaults of a definition.
pub(crate) fn set_defaults(definition: &mut Value) {
    let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    spec.entry("conversion")
        .or_insert_with(|| json!({"strategy": "None"}));
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let kind = names
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        names
            .entry("singular")
            .or_insert_with(|| Value::from(kind.to_lowercase()));
        names
            .entry("listKind")
            .or_insert_with(|| Value::from(format!("{kind}List")));
    }
}

pub(crate) fn validate(definition: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (group, plural) = (
        text(definition, &["spec", "group"]),
        text(definition, &["spec", "names", "plural"]),
    );
    for (field, value) in [
        ("spec.group", group),
        ("spec.scope", text(definition, &["spec", "scope"])),
        ("spec.names.plural", plural),
        ("spec.names.kind", text(definition, &["spec", "names", "kind"])),
    ] {
        if value.is_empty() {
            causes.push(Cause::required(field, ""));
        }
    }
    let name = text(definition, &["metadata", "name"]);
    if !plural.is_empty() && name != format!("{plural}.{group}") {
        causes.push(Cause::invalid_text(
            "metadata.name",
            name,
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
    if versions(definition)
        .filter(|version| flag(version, "storage"))
        .count()
        != 1
    {
        let why = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid_text("spec.versions", "", why));
    }
    for (index, version) in versions(definition).enumerate() {
        if version
            .get("schema")
            .and_then(|schema| schema.get("openAPIV3Schema"))
            .is_none()
        {
            let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
            causes.push(Cause::required(field, "schemas are required"));
        }
    }
    causes
}

/// Returns the kind that a definition describes, or `None` if the definition is incomplete.
pub(crate) fn parse_kind(definition: &Value) -> Option<Kind> {
    let spec = |key: &str| text(definition, &["spec", key]);
    let name = |key: &str| text(definition, &["spec", "names", key]);
    let (group, plural, kind) = (spec("group"), name("plural"), name("kind"));
    if group.is_empty() || plural.is_empty() || kind.is_empty() {
        return None;
    }
    let mut built = Description::new(group, "", kind, plural).kind;
    if !name("singular").is_empty() {
        name("singular").clone_into(&mut built.singular);
    }
    if !name("listKind").is_empty() {
        name("listKind").clone_into(&mut built.list_kind);
    }
    let short = definition
        .get("spec")
        .and_then(|spec| spec.get("names"))
        .and_then(|n| n.get("shortNames"));
    built.short_names = json::array(short)
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let categories = definition
        .get("spec")
        .and_then(|spec| spec.get("names"))
        .and_then(|names| names.get("categories"));
    built.categories = json::array(categories)
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    built.namespaced = spec("scope") != "Cluster";
    built.family = Family::Custom;
    built.storage = versions(definition).position(|version| flag(version, "storage"))?;
    built.versions = versions(definition)
        .map(|version| {
            let mut read = Version::new(group, text(version, &["name"]));
            read.served = flag(version, "served");
            read.status = version
                .get("subresources")
                .and_then(|resources| resources.get("status"))
                .is_some_and(|status| !status.is_null());
            read.scale = ScalePaths::of_version(version);
            read.rules = version
                .get("schema")
                .is_some_and(|schema| schema.to_string().contains("\"x-kubernetes-validations\""));
            #[cfg(feature = "rules")]
            if read.rules {
                let schema = version
                    .get("schema")
                    .and_then(|schema| schema.get("openAPIV3Schema"));
                read.evaluated_rules = schema.map(|schema| Arc::new(Rules::of_schema(schema)));
            }
            read.columns = Column::of_version(version);
            read.schema = version
                .get("schema")
                .and_then(|schema| schema.get("openAPIV3Schema"))
                .map(|schema| Arc::new(Schema::new(schema)));
            read
        })
        .collect();
    Some(built)
}

/// Returns the status of a definition that was just created.
pub(crate) fn first_status(definition: &Document) -> Value {
    let definition = definition.to_value();
    json!({
        "acceptedNames": {"plural": "", "kind": ""},
        "conditions": null,
        "storedVersions": stored_versions(&definition),
    })
}

/// Returns the status of a definition whose kind is served.
pub(crate) fn established_status(definition: &Value, now: &str) -> Value {
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({
            "type": kind,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastTransitionTime": now,
        })
    };
    json!({
        "acceptedNames": definition.get("spec").and_then(|spec| spec.get("names")),
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "storedVersions": stored_versions(definition),
    })
}

fn stored_versions(definition: &Value) -> Vec<&str> {
    versions(definition)
        .filter(|version| flag(version, "storage"))
        .map(|version| text(version, &["name"]))
        .collect()
}

/// Adds the condition `Terminating` to a definition's status.
pub(crate) fn mark_terminating(definition: &mut Document, now: &str) {
    let condition = json!({
        "type": "Terminating",
        "status": "True",
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        "lastTransitionTime": now,
    });
    let conditions = definition
        .get_mut("status")
        .and_then(|status| status.get_mut("conditions"))
        .and_then(Value::as_array_mut);
    if let Some(conditions) = conditions {
        conditions.retain(|known| known.get("type") != condition.get("type"));
        conditions.push(condition);
    }
}
