//! Objects as YAML for people to read, which kubectl reads back as the same objects.

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_saphyr::SingleQuoted;

/// A YAML document without its `---`.
///
/// # Errors
/// The value cannot be data.
///
/// The writer quotes what YAML 1.1 would read as anything but a string. Long strings are not folded:
/// a value that is one line in the cluster is one line to read.
pub fn yaml(value: &impl Serialize) -> Result<String, String> {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    serde_saphyr::to_string_with_options(value, options).map_err(|error| error.to_string())
}

/// Objects as YAML documents, each behind a comment that names it.
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

/// A value whose strings are quoted for people: JSON in a string, such as `MX_CONFIG`, stands in
/// single quotes and needs no backslashes.
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

/// Kind and name.
pub fn title(object: &Value) -> String {
    let text = |pointer| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    format!("{} {}", text("/kind"), text("/metadata/name"))
}

/// A snapshot of what a job gets, for review: the job in comments, so that who reads the folder of
/// snapshots as manifests finds no job there, then its objects.
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
