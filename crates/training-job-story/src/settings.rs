//! The values of a job's spec, and which of them are defaults.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::text::line;

/// A value of a job's spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Setting {
    /// Name of the value, such as `worker.replicas`.
    pub path: String,
    /// Value as text.
    pub value: String,
    /// True if the stored spec does not contain the value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_default: bool,
}

/// Returns settings with these names and values. A value is a default if the stored `spec` has no member of its name: no
/// path in `spec` contains the segments of the name in their order, without regard to case.
pub fn settings(fields: Vec<(String, String)>, spec: &Value) -> Vec<Setting> {
    let setting = |(path, value): (String, String)| {
        let segments: Vec<&str> = path.split('.').collect();
        Setting {
            is_default: !contains(spec, &segments),
            path: line(&path),
            value: line(&value),
        }
    };
    fields.into_iter().map(setting).collect()
}

fn contains(value: &Value, segments: &[&str]) -> bool {
    let Some((first, rest)) = segments.split_first() else {
        return true;
    };
    match value {
        Value::Object(members) => members.iter().any(|(name, member)| {
            let is_next = name.eq_ignore_ascii_case(first) || is_plural_of(name, first);
            !member.is_null() && (is_next && contains(member, rest) || contains(member, segments))
        }),
        Value::Array(items) => items.iter().any(|item| {
            let names = ["name", "mountPath", "containerPort"].map(|key| &item[key]);
            let is_next = names.iter().any(|name| match name {
                Value::String(name) => name == first,
                name => name.as_u64().is_some_and(|number| first.parse() == Ok(number)),
            });
            is_next && rest.iter().all(|segment| !item[*segment].is_null()) || contains(item, segments)
        }),
        _ => false,
    }
}

/// Lists of older kinds have names in the plural.
fn is_plural_of(name: &str, singular: &str) -> bool {
    name.strip_suffix('s')
        .is_some_and(|name| name.eq_ignore_ascii_case(singular))
}
