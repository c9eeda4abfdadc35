//! Completes or removes fields of a manifest's metadata as the API server does.

use kube_schema::field;
use kube_schema::names::MAX_LABEL_CHARS;
use serde_json::{Map, Value};

use crate::job::FieldErrors;

/// Fields of metadata that older clusters exported and that no server has any more.
const OLD_FIELDS: [&str; 2] = ["clusterName", "initializers"];

/// The placeholder for the characters that the API server appends to `metadata.generateName`.
const GENERATED_SUFFIX: &str = "xxxxx";

/// The length to which the API server truncates a prefix, so that a generated name is a valid label.
const MAX_PREFIX_LENGTH: usize = MAX_LABEL_CHARS - GENERATED_SUFFIX.len();

/// Gives a job that has only `metadata.generateName` a name of the length that it will have. Returns true if it did.
pub(super) fn complete_name(object: &mut Value) -> bool {
    let Some(metadata) = metadata_of(object) else {
        return false;
    };
    let is_named = match metadata.get("name") {
        None | Some(Value::Null) => false,
        Some(name) => name != "",
    };
    let prefix = metadata.get("generateName").and_then(Value::as_str);
    let Some(prefix) = prefix.filter(|prefix| !is_named && !prefix.is_empty()) else {
        return false;
    };
    let prefix: String = prefix.chars().take(MAX_PREFIX_LENGTH).collect();
    metadata.insert("name".to_owned(), format!("{prefix}{GENERATED_SUFFIX}").into());
    true
}

/// Removes the fields of metadata that the API server ignores. Sets labels and annotations without a value to the
/// empty text, as the API server does.
pub(super) fn remove(object: &mut Value, warnings: &mut FieldErrors) {
    let Some(metadata) = metadata_of(object) else {
        return;
    };
    for old in OLD_FIELDS {
        if metadata.remove(old).is_some() {
            let problem = "the API server drops this field of older clusters";
            warnings.push(field("metadata", old), problem, "remove it");
        }
    }
    for map in ["labels", "annotations"] {
        let entries = metadata.get_mut(map).and_then(Value::as_object_mut);
        for (key, value) in entries.into_iter().flatten().filter(|(_, value)| value.is_null()) {
            *value = "".into();
            let problem = "null is stored as an empty string by the API server";
            let path = field(&field("metadata", map), key);
            warnings.push(path, problem, "set a value or remove it");
        }
    }
}

fn metadata_of(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.as_object_mut()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_generated_name_is_as_long_as_the_api_servers() {
        let named = |metadata: Value| {
            let mut object = json!({ "metadata": metadata });
            complete_name(&mut object)
                .then(|| object["metadata"]["name"].as_str().unwrap_or_default().to_owned())
        };
        let run = Some("run-xxxxx".to_owned());
        assert_eq!(named(json!({"generateName": "run-"})), run);
        assert_eq!(named(json!({"generateName": "run-", "name": ""})), run);
        assert_eq!(named(json!({"generateName": "run-", "name": null})), run);
        for other in [
            json!({"generateName": "run-", "name": "a"}),
            json!({"generateName": "run-", "name": 5}),
            json!({"generateName": ""}),
            json!({"generateName": 5}),
            json!({}),
            json!("a"),
        ] {
            assert_eq!(named(other.clone()), None, "{other}");
        }
        let long = named(json!({"generateName": "r".repeat(70)})).unwrap_or_default();
        assert_eq!(long, format!("{}xxxxx", "r".repeat(58)));
    }

    #[test]
    fn fields_of_older_clusters_are_removed_with_a_warning() {
        let mut object =
            json!({"metadata": {"name": "a", "clusterName": "", "labels": {"a": null, "b": "c"}}});
        let mut warnings = FieldErrors::default();
        remove(&mut object, &mut warnings);
        assert_eq!(
            object,
            json!({"metadata": {"name": "a", "labels": {"a": "", "b": "c"}}})
        );
        let paths: Vec<_> = warnings.iter().map(|warning| warning.path.as_str()).collect();
        assert_eq!(paths, ["metadata.clusterName", "metadata.labels.a"]);
    }
}
