//! Writes a definition as a readable file for `kubectl apply`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_saphyr::{FlowMap, FlowSeq, SingleQuoted};

use crate::render::text;

/// The maximum length in bytes of a schema that is written on one line.
const MAX_LINE: usize = 100;
/// The maximum length in bytes of such a schema in a pod template. Its 1,200 fields are those of Kubernetes, and their
/// indentation alone would be 100 KB.
const MAX_TEMPLATE_LINE: usize = 12_000;

/// The maximum size of a definition, as JSON in bytes, that client-side `kubectl apply` can store. kubectl keeps a copy in
/// an annotation, and the annotations of an object have at most 256 KiB.
const MAX_CLIENT_SIDE_BYTES: usize = 255 << 10;

/// Returns a warning with the remedy if client-side `kubectl apply` cannot store the definition, which is the case from
/// about five pod templates on.
pub fn size_warning(definition: &CustomResourceDefinition) -> Option<String> {
    let bytes = serde_json::to_vec(definition).ok()?.len();
    (bytes > MAX_CLIENT_SIDE_BYTES).then(|| {
        format!(
            "{}: apply the definition with kubectl apply --server-side; without it kubectl keeps a copy in an annotation, \
             which must be at most 256 KiB (has {} KiB)",
            definition.spec.names.kind,
            bytes >> 10
        )
    })
}

/// Returns a definition as YAML, with short parts on one line.
///
/// # Errors
/// If the definition cannot be written as YAML, which does not occur for results of [`definition`](super::definition).
pub fn manifest(definition: &CustomResourceDefinition) -> Result<String, String> {
    let mut value = serde_json::to_value(definition).map_err(|error| error.to_string())?;
    use_integers(&mut value);
    let yaml = text::yaml(&Lines {
        value: &value,
        width: MAX_LINE,
        quoted: false,
    })?;
    Ok(format!("---\n# {}\n{yaml}", text::title(&value)))
}

/// Converts whole floating-point numbers to integers. Bounds have the type of floating-point numbers, but are integers
/// in manifests.
fn use_integers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(float) = number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 1e15) {
                *value = (float as i64).into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(use_integers),
        Value::Object(members) => members.values_mut().for_each(use_integers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// A part of a definition, on one line if it is short.
struct Lines<'a> {
    value: &'a Value,
    width: usize,
    quoted: bool,
}

impl<'a> Serialize for Lines<'a> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let part = |key: &str, value: &'a Value| Lines {
            value,
            width: match key {
                "template" => MAX_TEMPLATE_LINE,
                // A version that only repeats the stored version does not have to be readable.
                _ if value["storage"] == false => usize::MAX,
                _ => self.width,
            },
            quoted: self.quoted || key == RULES,
        };
        let line = Line {
            value: self.value,
            quoted: self.quoted,
        };
        match self.value {
            Value::Object(_) if self.is_short() => FlowMap(line).serialize(serializer),
            Value::Array(_) if self.is_short() => FlowSeq(line).serialize(serializer),
            Value::Object(members) => {
                serializer.collect_map(members.iter().map(|(key, value)| (key, part(key, value))))
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(|value| part("", value))),
            _ => line.serialize(serializer),
        }
    }
}

impl Lines<'_> {
    fn is_short(&self) -> bool {
        self.value.to_string().len() <= self.width
    }
}

/// The list of a schema's rules. Their strings are in single quotes, because not all YAML parsers read expressions
/// without quotes.
const RULES: &str = "x-kubernetes-validations";

/// A part of a definition on one line.
struct Line<'a> {
    value: &'a Value,
    quoted: bool,
}

impl<'a> Serialize for Line<'a> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let part = |key: &str, value: &'a Value| Line {
            value,
            quoted: self.quoted || key == RULES,
        };
        match self.value {
            Value::String(text) if self.quoted => SingleQuoted(text).serialize(serializer),
            Value::Object(members) => {
                serializer.collect_map(members.iter().map(|(key, value)| (key, part(key, value))))
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(|value| part("", value))),
            value => value.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_over_256_kib_has_a_warning() {
        let mut definition = CustomResourceDefinition::default();
        definition.spec.names.kind = "ToyJob".to_owned();
        assert_eq!(size_warning(&definition), None);
        definition.spec.group = "g".repeat(300 << 10);
        let warning = size_warning(&definition).unwrap();
        assert!(
            warning.starts_with("ToyJob: apply the definition with kubectl apply --server-side;"),
            "{warning}"
        );
        assert!(warning.ends_with("(has 300 KiB)"), "{warning}");
    }
}
