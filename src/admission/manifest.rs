//! A definition as a file that people can read and `kubectl apply` takes.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_saphyr::{FlowMap, FlowSeq, SingleQuoted};

use crate::render::text;

/// Schemas up to this long are written on one line.
const NARROW: usize = 100;
/// The same in a pod template, whose 1,200 fields are Kubernetes' own. In block style their indentation
/// alone would be 100 KB.
const WIDE: usize = 12_000;

/// A definition as YAML, short parts on one line: small enough for a client-side `kubectl apply`, which keeps
/// the whole object in an annotation of at most 256 KiB.
///
/// # Errors
/// The definition cannot be written as YAML; none that [`definition`](super::definition) makes.
pub fn manifest(definition: &CustomResourceDefinition) -> Result<String, String> {
    let mut value = serde_json::to_value(definition).map_err(|error| error.to_string())?;
    use_integers(&mut value);
    let yaml = text::yaml(&Lines {
        value: &value,
        width: NARROW,
        quoted: false,
    })?;
    Ok(format!("---\n# {}\n{yaml}", text::title(&value)))
}

/// Bounds are floating-point numbers in the API's type, and integers in every manifest.
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
                "template" => WIDE,
                // Nobody reads a version that only repeats the stored one.
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

/// The list of a schema's rules. Their strings stand in single quotes: expressions are full of what only
/// some parsers of YAML read without.
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
