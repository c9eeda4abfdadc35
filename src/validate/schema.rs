//! An object against the OpenAPI schema of its custom resource definition, as the API server checks
//! it, so that a file can be checked without one.
//!
//! A structural schema is all that a definition may hold, so this is small: no references, no
//! `allOf`. Patterns and rules in CEL are not evaluated.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

use crate::api::schema::object_meta;
use crate::job::{FieldErrors, nearest};
use kube_syntax::{field, item};

/// With more known fields than this, naming them all helps nobody.
const MAX_NAMED: usize = 12;

/// What `schema`, that of a definition's version, has against `object`.
///
/// A null property is taken as absent, as the API server takes it. A null value of a map is
/// reported: the API server would drop it without a word, and whoever wrote it meant something.
pub fn check(schema: &JSONSchemaProps, object: &Value) -> FieldErrors {
    let mut errors = FieldErrors::default();
    let Value::Object(members) = object else {
        wrong_type("", object, "an object", &mut errors);
        return errors;
    };
    check_properties(schema, members, "", true, &mut errors);
    if let Some(metadata) = members.get("metadata").filter(|m| !m.is_null()) {
        check_value(object_meta(), metadata, "metadata", &mut errors);
    }
    errors
}

/// Whether a value is of the schema's type; nothing is said of its parts.
pub(super) fn fits(schema: &JSONSchemaProps, value: &Value) -> bool {
    if schema.x_kubernetes_int_or_string == Some(true) {
        return value.is_string() || is_integer(value);
    }
    if value.is_null() {
        return schema.nullable == Some(true);
    }
    let type_ = schema.type_.as_deref().and_then(|type_| type_of(type_, value));
    type_.is_none_or(|(_, fits)| fits) && fits_format(schema, value)
}

fn check_value(schema: &JSONSchemaProps, value: &Value, path: &str, errors: &mut FieldErrors) {
    if schema.x_kubernetes_int_or_string == Some(true) {
        if !fits(schema, value) {
            wrong_type(path, value, "an integer or a string", errors);
        }
        return;
    }
    if value.is_null() {
        if schema.nullable != Some(true) {
            errors.push(path, "it is null", "give it a value, or leave it out");
        }
        return;
    }
    if let Some((wanted, fits)) = schema.type_.as_deref().and_then(|type_| type_of(type_, value))
        && !fits
    {
        return wrong_type(path, value, wanted, errors);
    }
    if let Some(words) = &schema.enum_ {
        check_enum(words, value, path, errors);
    }
    match value {
        Value::Number(_) => check_number(schema, value, path, errors),
        Value::String(text) => {
            let length = text.chars().count();
            check_bounds(
                length,
                schema.min_length,
                schema.max_length,
                "characters",
                path,
                errors,
            );
        }
        Value::Array(items) => {
            check_bounds(
                items.len(),
                schema.min_items,
                schema.max_items,
                "items",
                path,
                errors,
            );
            for (n, value) in items.iter().enumerate() {
                if let Some(schema) = of_items(schema) {
                    check_value(schema, value, &item(path, n), errors);
                }
            }
        }
        Value::Object(members) => {
            let embedded = schema.x_kubernetes_embedded_resource == Some(true);
            check_properties(schema, members, path, embedded, errors);
        }
        Value::Bool(_) | Value::Null => {}
    }
}

/// `is_resource`: a whole Kubernetes object, with fields that no schema of a definition names.
fn check_properties(
    schema: &JSONSchemaProps,
    members: &serde_json::Map<String, Value>,
    path: &str,
    is_resource: bool,
    errors: &mut FieldErrors,
) {
    let none = BTreeMap::new();
    let properties = schema.properties.as_ref().unwrap_or(&none);
    let any_key = of_any_key(schema);
    let open = schema.x_kubernetes_preserve_unknown_fields == Some(true)
        || matches!(
            schema.additional_properties,
            Some(JSONSchemaPropsOrBool::Bool(true))
        );
    check_bounds(
        members.len(),
        schema.min_properties,
        schema.max_properties,
        "entries",
        path,
        errors,
    );
    for (key, value) in members {
        let at = field(path, key);
        match properties.get(key).or(any_key) {
            Some(_) if value.is_null() && properties.contains_key(key) => {}
            Some(schema) => check_value(schema, value, &at, errors),
            None if is_resource && matches!(key.as_str(), "apiVersion" | "kind" | "metadata") => {}
            None if open => {}
            None => {
                let known = properties.keys().map(String::as_str);
                errors.push(at, "there is no such field", unknown_remedy(key, known));
            }
        }
    }
    for key in schema.required.iter().flatten() {
        if members.get(key).is_none_or(Value::is_null) {
            errors.push(field(path, key), "it is missing", "add it");
        }
    }
}

fn unknown_remedy<'a>(key: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    if let Some(name) = nearest(key, known.clone()) {
        return format!("did you mean {name}?");
    }
    let names: Vec<_> = known.collect();
    if names.is_empty() || names.len() > MAX_NAMED {
        return "remove it".to_owned();
    }
    format!("use one of {}, or remove it", names.join(", "))
}

fn check_enum(words: &[JSON], value: &Value, path: &str, errors: &mut FieldErrors) {
    if words.iter().any(|JSON(word)| word == value) {
        return;
    }
    let known: Vec<_> = words
        .iter()
        .filter_map(|JSON(word)| word.as_str())
        .filter(|w| !w.is_empty())
        .collect();
    errors.unknown_word(path, value.as_str().unwrap_or_default(), &known);
}

fn check_number(schema: &JSONSchemaProps, value: &Value, path: &str, errors: &mut FieldErrors) {
    let Some(number) = value.as_f64() else { return };
    if let Some(min) = schema.minimum.filter(|min| number < *min) {
        errors.too_small(path, value, min);
    } else if let Some(max) = schema.maximum.filter(|max| number > *max) {
        errors.too_big(path, value, max);
    } else if !fits_format(schema, value) {
        let bits = schema
            .format
            .as_deref()
            .unwrap_or_default()
            .trim_start_matches("int");
        errors.push(
            path,
            format!("{value} is too big for {bits} bits"),
            "use a smaller number",
        );
    }
}

fn check_bounds(
    count: usize,
    min: Option<i64>,
    max: Option<i64>,
    of: &str,
    path: &str,
    errors: &mut FieldErrors,
) {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    if let Some(min) = min.filter(|min| count < *min) {
        errors.push(
            path,
            format!("it has {count} {of}"),
            format!("give it at least {min}"),
        );
    } else if let Some(max) = max.filter(|max| count > *max) {
        errors.push(
            path,
            format!("it has {count} {of}"),
            format!("give it at most {max}"),
        );
    }
}

/// How to call a type of the schema, and whether the value is of it. Nothing for a type that is unknown.
fn type_of(type_: &str, value: &Value) -> Option<(&'static str, bool)> {
    Some(match type_ {
        "object" => ("an object", value.is_object()),
        "array" => ("a list", value.is_array()),
        "string" => ("a string", value.is_string()),
        "boolean" => ("true or false", value.is_boolean()),
        "integer" => ("an integer", is_integer(value)),
        "number" => ("a number", value.is_number()),
        _ => return None,
    })
}

/// Whether an integer fits the bits that its format gives it.
fn fits_format(schema: &JSONSchemaProps, value: &Value) -> bool {
    if !value.is_number() {
        return true;
    }
    match schema.format.as_deref() {
        Some("int32") => value.as_i64().is_some_and(|n| i32::try_from(n).is_ok()),
        Some("int64") => value.is_i64(),
        _ => true,
    }
}

/// Numbers beyond 64 bits come as floating-point numbers without a fraction.
fn is_integer(value: &Value) -> bool {
    value.as_f64().is_some_and(|n| n.fract() == 0.0)
}

fn wrong_type(path: &str, value: &Value, wanted: &str, errors: &mut FieldErrors) {
    let problem = match value {
        Value::Null => "it is null".to_owned(),
        Value::Bool(_) => format!("{value} is a boolean"),
        Value::Number(_) if wanted == "an integer" => format!("{value} is not whole"),
        Value::Number(_) => format!("{value} is a number"),
        Value::String(text) => format!("{text:?} is a string"),
        Value::Array(_) => "it is a list".to_owned(),
        Value::Object(_) => "it is an object".to_owned(),
    };
    let remedy = match (wanted, value) {
        ("a string" | "an integer or a string", Value::Bool(_) | Value::Number(_)) => {
            "put it in quotes".to_owned()
        }
        _ => format!("use {wanted}"),
    };
    errors.push(path, problem, remedy);
}

pub(super) fn of_any_key(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match schema.additional_properties.as_ref()? {
        JSONSchemaPropsOrBool::Schema(schema) => Some(schema),
        JSONSchemaPropsOrBool::Bool(_) => None,
    }
}

pub(super) fn of_items(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match schema.items.as_ref()? {
        JSONSchemaPropsOrArray::Schema(schema) => Some(schema),
        JSONSchemaPropsOrArray::Schemas(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> JSONSchemaProps {
        serde_json::from_value(json!({
            "type": "object",
            "required": ["spec"],
            "properties": {"spec": {
                "type": "object",
                "required": ["mode"],
                "properties": {
                    "mode": {"type": "string", "enum": ["Train", "Tune", ""]},
                    "count": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 10},
                    "small": {"type": "integer", "format": "int32"},
                    "port": {"x-kubernetes-int-or-string": true},
                    "maybe": {"type": "string", "nullable": true},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    "name": {"type": "string", "minLength": 1, "maxLength": 3},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "big": {"type": "integer", "format": "int64"},
                    "ratio": {"type": "number", "minimum": 0.5},
                    "list": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "boolean"}},
                },
            }},
        }))
        .unwrap()
    }

    fn errors(spec: Value) -> Vec<String> {
        let object = json!({"apiVersion": "v", "kind": "K", "metadata": {"name": "x"}, "spec": spec});
        check(&schema(), &object)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn what_the_schema_allows_passes() {
        for spec in [
            json!({"mode": "Train", "count": 0, "port": 80, "list": [true]}),
            json!({"mode": "", "count": 10, "port": "http", "labels": {"a/b": "c"}}),
            json!({"mode": "", "name": "abc", "list": [true, false], "ratio": 0.5, "big": i64::MAX}),
            json!({"mode": "Tune", "count": null, "maybe": null, "free": {"any": {"thing": null}}}),
        ] {
            assert_eq!(errors(spec.clone()), Vec::<String>::new(), "{spec}");
        }
    }

    #[test]
    fn what_it_forbids_is_reported_with_its_path() {
        for (spec, error) in [
            (json!({}), "spec.mode: it is missing; add it"),
            (json!({"mode": null}), "spec.mode: it is missing; add it"),
            (
                json!({"mode": "train"}),
                "spec.mode: \"train\" is not known; did you mean Train? use one of Train, Tune",
            ),
            (
                json!({"mode": true}),
                "spec.mode: true is a boolean; put it in quotes",
            ),
            (
                json!({"mode": "", "count": "1"}),
                "spec.count: \"1\" is a string; use an integer",
            ),
            (
                json!({"mode": "", "count": 1.5}),
                "spec.count: 1.5 is not whole; use an integer",
            ),
            (
                json!({"mode": "", "count": -1}),
                "spec.count: -1 is negative; use 0 or more",
            ),
            (
                json!({"mode": "", "count": 11}),
                "spec.count: 11 is too big; use at most 10",
            ),
            (
                json!({"mode": "", "small": 3_000_000_000_u64}),
                "spec.small: 3000000000 is too big for 32 bits; use a smaller number",
            ),
            (
                json!({"mode": "", "port": []}),
                "spec.port: it is a list; use an integer or a string",
            ),
            (
                json!({"mode": "", "port": 1.5}),
                "spec.port: 1.5 is a number; put it in quotes",
            ),
            (
                json!({"mode": "", "name": "long"}),
                "spec.name: it has 4 characters; give it at most 3",
            ),
            (
                json!({"mode": "", "big": 9_223_372_036_854_775_808_u64}),
                "spec.big: 9223372036854775808 is too big for 64 bits; use a smaller number",
            ),
            (
                json!({"mode": "", "ratio": 0.25}),
                "spec.ratio: 0.25 is too small; use 0.5 or more",
            ),
            (
                json!({"mode": "", "ratio": "half"}),
                "spec.ratio: \"half\" is a string; use a number",
            ),
            (
                json!({"mode": "", "free": 5}),
                "spec.free: 5 is a number; use an object",
            ),
            (
                json!({"mode": "", "list": {}}),
                "spec.list: it is an object; use a list",
            ),
            (
                json!({"mode": "", "list": [5]}),
                "spec.list[0]: 5 is a number; use true or false",
            ),
            (
                json!({"mode": "", "name": ""}),
                "spec.name: it has 0 characters; give it at least 1",
            ),
            (
                json!({"mode": "", "list": [true, true, true]}),
                "spec.list: it has 3 items; give it at most 2",
            ),
            (
                json!({"mode": "", "labels": {"a/b": 5}}),
                "spec.labels[a/b]: 5 is a number; put it in quotes",
            ),
            (
                json!({"mode": "", "labels": {"a": null}}),
                "spec.labels.a: it is null; give it a value, or leave it out",
            ),
            (
                json!({"mode": "", "list": []}),
                "spec.list: it has 0 items; give it at least 1",
            ),
            (
                json!({"mode": "", "list": [true, null]}),
                "spec.list[1]: it is null; give it a value, or leave it out",
            ),
            (
                json!({"mode": "", "cuont": 1}),
                "spec.cuont: there is no such field; did you mean count?",
            ),
        ] {
            assert_eq!(errors(spec.clone()), [error], "{spec}");
        }
    }

    #[test]
    fn a_whole_object_within_another_has_a_kind_and_others_have_not() {
        let errors = |embedded: bool| {
            let schema = serde_json::from_value(json!({"type": "object", "properties": {
                "part": {"type": "object", "x-kubernetes-embedded-resource": embedded},
            }}));
            check(&schema.unwrap(), &json!({"part": {"kind": "Pod"}}))
                .iter()
                .count()
        };
        assert_eq!((errors(true), errors(false)), (0, 1));
    }

    #[test]
    fn few_fields_are_named_and_many_are_not() {
        for (known, remedy) in [
            (0, "remove it".to_owned()),
            (1, "use one of field-00, or remove it".to_owned()),
            (13, "remove it".to_owned()),
        ] {
            let names: Vec<String> = (0..known).map(|n| format!("field-{n:02}")).collect();
            assert_eq!(unknown_remedy("x", names.iter().map(String::as_str)), remedy);
        }
        let twelve: Vec<String> = (0..MAX_NAMED).map(|n| format!("field-{n:02}")).collect();
        let remedy = unknown_remedy("x", twelve.iter().map(String::as_str));
        assert!(remedy.ends_with("field-11, or remove it"), "{remedy}");
    }

    #[test]
    fn a_value_of_unknown_type_and_one_without_a_type_pass() {
        let schema =
            serde_json::from_value(json!({"type": "object", "additionalProperties": {"type": "odd"}}));
        assert!(
            check(&schema.unwrap(), &json!({"a": 1, "b": null}))
                .iter()
                .count()
                == 1
        );
        let open = serde_json::from_value(json!({"type": "object", "additionalProperties": true}));
        assert!(check(&open.unwrap(), &json!({"a": 1})).is_empty());
        let closed = serde_json::from_value(json!({"type": "object"}));
        assert!(!check(&closed.unwrap(), &json!({"a": 1})).is_empty());
    }

    #[test]
    fn metadata_is_checked_as_kubernetes_own() {
        let object = json!({"metadata": {"nmae": "x", "labels": {"a": 1}}, "spec": {"mode": ""}, "sepc": {}});
        let errors: Vec<_> = check(&schema(), &object)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            errors,
            [
                "sepc: there is no such field; did you mean spec?",
                "metadata.labels.a: 1 is a number; put it in quotes",
                "metadata.nmae: there is no such field; did you mean name?",
            ]
        );
    }
}
