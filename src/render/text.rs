//! Writes objects as readable YAML, which kubectl reads back as the same objects.

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_saphyr::SingleQuoted;

/// Returns a YAML document without its `---`.
///
/// # Errors
/// The value cannot be represented as data.
///
/// The writer quotes strings that YAML 1.1 would read as another type. Long strings are not folded, so that a value
/// of one line in the cluster is one line in the text.
pub fn yaml(value: &impl Serialize) -> Result<String, String> {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    serde_saphyr::to_string_with_options(value, options).map_err(|error| error.to_string())
}

/// Returns objects as YAML documents, each after a comment that names it.
///
/// # Errors
/// As for [`yaml`].
pub fn documents(objects: &[Value]) -> Result<String, String> {
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n# ");
        text.push_str(&title(object));
        text.push('\n');
        text.push_str(&yaml(&Readable(object))?);
    }
    Ok(text)
}

/// A value whose strings are quoted for readability. JSON in a string, such as `MX_CONFIG`, is put in single quotes,
/// and so needs no backslashes.
pub struct Readable<'a>(pub &'a Value);

impl Serialize for Readable<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::String(text) if is_json(text) => SingleQuoted(text).serialize(serializer),
            Value::Array(items) => serializer.collect_seq(items.iter().map(Readable)),
            Value::Object(members) => serializer.collect_map(members.iter().map(|(k, v)| (k, Readable(v)))),
            value => value.serialize(serializer),
        }
    }
}

fn is_json(text: &str) -> bool {
    text.starts_with(['{', '[', '"']) && text.chars().all(|c| c == ' ' || c.is_ascii_graphic())
}

/// Returns the kind and name of an object.
pub fn title(object: &Value) -> String {
    let text = |pointer| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    format!("{} {}", text("/kind"), text("/metadata/name"))
}

/// Returns a snapshot of a job's objects, for review. The job comes first, as a comment, so that reading the
/// snapshots as manifests yields no job. Its objects follow.
///
/// # Errors
/// As for [`yaml`].
pub fn snapshot(heading: &str, job: &Value, objects: &[Value]) -> Result<String, String> {
    let mut text = format!("# {heading}\n#\n");
    for line in yaml(&Readable(job))?.lines() {
        text += format!("# {line}").trim_end();
        text.push('\n');
    }
    Ok(text + &documents(objects)?)
}
