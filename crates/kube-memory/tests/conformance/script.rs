//! Scripts: YAML files of requests, with the expected responses of both servers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    /// The file's name. With hyphens it is also the namespace.
    #[serde(skip)]
    pub(crate) name: String,
    /// Values for names in braces in paths and bodies.
    #[serde(default, rename = "let")]
    pub(crate) names: BTreeMap<String, String>,
    /// Objects that are created before the first step, such as CustomResourceDefinitions.
    #[serde(default)]
    pub(crate) before: Vec<Value>,
    /// True if the script needs the kinds of `crds/`.
    #[serde(default)]
    pub(crate) jobs: bool,
    /// True if no other script may run at the same time.
    #[serde(default)]
    pub(crate) alone: bool,
    pub(crate) steps: Vec<Step>,
}

/// One step, with one of `send`, `watch`, `read`, `await` and `compact`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// A method and a path.
    pub(crate) send: Option<String>,
    /// Opens the watch of this name at `path`.
    pub(crate) watch: Option<String>,
    /// Reads `lines` lines of the watch of this name, or with `end` all that are left.
    pub(crate) read: Option<String>,
    /// Waits until the object at this path is `gone`, or that its members are as in `until`.
    pub(crate) r#await: Option<String>,
    /// Compacts the history before this version.
    pub(crate) compact: Option<String>,

    pub(crate) path: Option<String>,
    pub(crate) body: Option<Value>,
    /// A body that is sent unchanged, such as invalid JSON.
    pub(crate) text: Option<String>,
    /// A body of bytes in base 64, such as protobuf.
    pub(crate) base64: Option<String>,
    /// The body's media type. Default: JSON.
    pub(crate) r#type: Option<String>,
    pub(crate) accept: Option<String>,
    /// The status code that both servers must return.
    pub(crate) code: Option<u16>,
    /// Repeats the call until the response has that code, because the admission of a real server sees the effect of
    /// another call with a delay.
    #[serde(default)]
    pub(crate) again: bool,
    pub(crate) lines: Option<usize>,
    #[serde(default)]
    pub(crate) end: bool,
    #[serde(default)]
    pub(crate) gone: bool,
    /// Pointers into the object, with values.
    #[serde(default)]
    pub(crate) until: BTreeMap<String, Value>,

    /// Pointers to the parts of the body that are compared, of a document about all kinds. A segment `a.b=c` is the
    /// item of a list whose member `b` of member `a` is `c`.
    #[serde(default)]
    pub(crate) only: Vec<String>,
    /// Pointers into the response. Later steps use their values by name.
    #[serde(default)]
    pub(crate) keep: BTreeMap<String, String>,
    /// The differences that are intended.
    #[serde(default)]
    pub(crate) differs: Vec<Named>,
}

/// An intended difference, with its reason and both values.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Named {
    /// A pointer into the masked response: `/code`, `/body/…`, `/lines/…`.
    pub(crate) at: String,
    pub(crate) why: String,
    /// `None` if the real API server has no such member.
    pub(crate) real: Option<Value>,
    /// `None` if the in-memory API has no such member.
    pub(crate) memory: Option<Value>,
}

impl Script {
    pub(crate) fn read(folder: &Path, name: &str) -> Self {
        let path = folder.join(format!("{name}.yaml"));
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        let mut script: Self = serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        script.name = name.to_owned();
        script
    }

    pub(crate) fn namespace(&self) -> String {
        self.name.replace('_', "-")
    }
}

impl Step {
    /// Returns a description of the step for messages.
    pub(crate) fn title(&self) -> String {
        let parts = [
            ("", &self.send),
            ("watch ", &self.watch),
            ("read ", &self.read),
            ("await ", &self.r#await),
            ("compact ", &self.compact),
        ];
        let title = parts
            .iter()
            .find_map(|(word, part)| Some(format!("{word}{}", part.as_ref()?)));
        title.expect("a step does something")
    }
}

impl Step {
    /// Returns the compared parts of a response.
    pub(crate) fn compared(&self, mut response: Value) -> Value {
        if !self.only.is_empty() {
            let parts = self.only.iter().map(|at| part(&response["body"], at).clone());
            response["body"] = parts.collect();
        }
        response
    }
}

/// Returns the value at a pointer as in [`Step::only`]; null if there is none. A number is the index of an item.
fn part<'a>(value: &'a Value, at: &str) -> &'a Value {
    at.split('/').skip(1).fold(value, |value, segment| {
        let segment = segment.replace("~1", "/");
        let Some((key, wanted)) = segment.split_once('=') else {
            return match segment.parse::<usize>() {
                Ok(index) if value.is_array() => &value[index],
                _ => &value[segment],
            };
        };
        let mut items = value.as_array().into_iter().flatten();
        items
            .find(|item| key.split('.').fold(*item, |value, key| &value[key]) == wanted)
            .unwrap_or(&Value::Null)
    })
}

/// Replaces names in braces by their values.
pub(crate) fn fill(text: &str, names: &BTreeMap<String, String>) -> String {
    let mut filled = text.to_owned();
    // Values may contain names.
    for _ in 0..2 {
        for (name, value) in names {
            filled = filled.replace(&format!("{{{name}}}"), value);
        }
    }
    filled
}

/// Like [`fill`], in every text of a body.
pub(crate) fn fill_value(value: &Value, names: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => Value::from(fill(text, names)),
        Value::Array(items) => items.iter().map(|item| fill_value(item, names)).collect(),
        Value::Object(members) => {
            let filled = members
                .iter()
                .map(|(key, value)| (fill(key, names), fill_value(value, names)));
            Value::Object(filled.collect())
        }
        other => other.clone(),
    }
}
