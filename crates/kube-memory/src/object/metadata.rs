//! Validation of metadata: labels, annotations, finalizers, owner references.

use kube_schema::names::{label_1123, label_value, qualified, subdomain};
use serde_json::{Map, Value};

use crate::object::{cause::Cause, document::Document, json::array, members::Members};

const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
    'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
/// The greatest total length of the keys and values of the annotations, in bytes.
const MAX_ANNOTATIONS_BYTES: usize = 256 * 1024;

/// The rule for an object's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameRule {
    Subdomain,
    Label1123,
}

impl NameRule {
    /// Returns the error if `name` violates the rule.
    pub(crate) fn broken_by(self, name: &str) -> Option<String> {
        match self {
            Self::Subdomain => subdomain(name),
            Self::Label1123 => label_1123(name),
        }
    }
}

/// Checks a map of labels, of metadata or of a selector.
pub(crate) fn labels(field: &str, labels: &Value, causes: &mut Vec<Cause>) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        for why in qualified(key) {
            causes.push(Cause::invalid_text(field, key, &why));
        }
        let value = value.as_str().unwrap_or_default();
        if let Some(why) = label_value(value) {
            causes.push(Cause::invalid_text(field, value, &why));
        }
    }
}

/// Checks the metadata of an object of any kind, except its name.
pub(crate) fn metadata(meta: &Members, causes: &mut Vec<Cause>) {
    if let Some(value) = meta.get("labels") {
        labels("metadata.labels", value, causes);
    }
    let mut size = 0;
    for (key, value) in meta
        .get("annotations")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        size += key.len() + value.as_str().map_or(0, str::len);
        for why in qualified(&key.to_lowercase()) {
            causes.push(Cause::invalid_text("metadata.annotations", key, &why));
        }
    }
    if size > MAX_ANNOTATIONS_BYTES {
        causes.push(Cause::too_long(
            "metadata.annotations",
            MAX_ANNOTATIONS_BYTES as u64,
        ));
    }
    for (index, finalizer) in array(meta.get("finalizers")).enumerate() {
        let name = finalizer.as_str().unwrap_or_default();
        let wrong = qualified(name);
        for why in &wrong {
            causes.push(Cause::invalid_text("metadata.finalizers", name, why));
        }
        if wrong.is_empty()
            && !name.contains('/')
            && !matches!(name, "orphan" | "foregroundDeletion" | "kubernetes")
        {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(Cause::invalid_text(
                format!("metadata.finalizers[{index}]"),
                name,
                why,
            ));
        }
    }
    owner_references(meta, causes);
}

fn owner_references(meta: &Members, causes: &mut Vec<Cause>) {
    let mut controllers = Vec::new();
    for (index, reference) in array(meta.get("ownerReferences")).enumerate() {
        for key in ["apiVersion", "kind", "name", "uid"] {
            if reference
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .is_empty()
            {
                let field = format!("metadata.ownerReferences[{index}].{key}");
                causes.push(Cause::required(field, "must not be empty"));
            }
        }
        if reference.get("controller") == Some(&Value::Bool(true)) {
            let text = |key: &str| reference.get(key).and_then(Value::as_str).unwrap_or_default();
            controllers.push(format!("{}/{}", text("kind"), text("name")));
        }
    }
    if let [one, other, ..] = controllers.as_slice() {
        let why = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {one} and {other}"
        );
        let shown: Vec<String> = array(meta.get("ownerReferences")).map(shown_reference).collect();
        let shown = format!("[{}]", shown.join(","));
        causes.push(Cause::invalid_shown("metadata.ownerReferences", &shown, &why));
    }
}

/// Returns a reference as text, with its members in the order of their declaration.
fn shown_reference(reference: &Value) -> String {
    let keys = [
        "apiVersion",
        "kind",
        "name",
        "uid",
        "controller",
        "blockOwnerDeletion",
    ];
    let members: Vec<String> = keys
        .into_iter()
        .filter_map(|key| Some(format!("{key:?}:{}", reference.get(key)?)))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// Checks the keys of a config map's or a secret's data.
pub(crate) fn config_keys(object: &Document, causes: &mut Vec<Cause>) {
    for field in ["data", "binaryData"] {
        for key in object.get(field).and_then(Value::as_object).into_iter().flatten() {
            let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
            if !key.0.bytes().all(fits) {
                causes.push(Cause::invalid_text(
                    format!("{field}[{}]", key.0),
                    key.0,
                    CONFIG_KEY,
                ));
            }
        }
    }
}

/// Rejects metadata whose members have the wrong JSON type, and drops members that are null or empty.
///
/// # Errors
///
/// A message that names the member with the wrong type.
pub(crate) fn normalize_metadata(object: &mut Document) -> Result<(), String> {
    if object.metadata().is_none() && object.get("metadata").is_none_or(Value::is_null) {
        object.insert("metadata", Value::Object(Map::new()));
    }
    let is_kept = |key: &str, value: &Value| match value {
        _ if matches!(key, "managedFields" | "selfLink") => false,
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !(members.is_empty() && matches!(key, "labels" | "annotations")),
        Value::String(text) => !text.is_empty(),
        _ => true,
    };
    // Only metadata that changes is copied; see `Document`.
    if let Some(meta) = object.metadata()
        && !meta.iter().all(|(key, value)| is_kept(key, value))
        && let Some(meta) = object.metadata_mut()
    {
        meta.retain(is_kept);
    }
    let Some(meta) = object.metadata() else {
        return Err(wrong_type("metadata"));
    };
    for (key, value) in meta.iter() {
        let fits = match key {
            "name" | "generateName" | "namespace" | "uid" | "resourceVersion" | "creationTimestamp"
            | "deletionTimestamp" => value.is_string(),
            "generation" | "deletionGracePeriodSeconds" => value.is_i64(),
            "labels" | "annotations" => value
                .as_object()
                .is_some_and(|map| map.values().all(Value::is_string)),
            "finalizers" => value
                .as_array()
                .is_some_and(|items| items.iter().all(Value::is_string)),
            "ownerReferences" => value
                .as_array()
                .is_some_and(|items| items.iter().all(Value::is_object)),
            _ => true,
        };
        if !fits {
            return Err(wrong_type(&format!("metadata.{key}")));
        }
    }
    Ok(())
}

fn wrong_type(field: &str) -> String {
    format!("wrong type for {field}")
}
