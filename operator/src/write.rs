//! Kubernetes objects as text: YAML that kubectl reads back as the same objects, or JSON.

use std::io::{self, Write};

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_saphyr::SingleQuoted;

/// A YAML document without its `---`.
///
/// The writer quotes what YAML 1.1 would read as anything but a string. Long strings are not folded:
/// a value that is one line in the cluster is one line to read.
pub(crate) fn yaml(value: &impl Serialize) -> Result<String, String> {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    serde_saphyr::to_string_with_options(value, options).map_err(|error| error.to_string())
}

/// Objects as YAML documents, each behind a comment that names it.
pub(crate) fn documents(objects: &[Value]) -> Result<String, String> {
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n# ");
        text.push_str(&title(object));
        text.push('\n');
        text.push_str(&yaml(&Readable(object))?);
    }
    Ok(text)
}

/// Objects as one JSON `List`.
pub(crate) fn list(objects: Vec<Value>) -> Result<String, String> {
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let mut text = serde_json::to_string_pretty(&list).map_err(|error| error.to_string())?;
    text.push('\n');
    Ok(text)
}

/// Writes to standard output. A reader that has seen enough, such as `head`, is no failure.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// A value whose strings are quoted for people: JSON in a string, such as `MX_CONFIG`, stands in
/// single quotes and needs no backslashes.
struct Readable<'a>(&'a Value);

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

pub(crate) fn title(object: &Value) -> String {
    let text = |pointer| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    format!("{} {}", text("/kind"), text("/metadata/name"))
}
