//! OpenAPI v3 schemas of custom resources: pruning, defaults and validation.
//!
//! `x-kubernetes-validations` (CEL rules) are not evaluated.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use super::{cause::Cause, document::Document};

/// A schema, read once when its definition is stored.
#[derive(Debug, Clone, Default)]
pub(super) struct Schema {
    kind: Option<String>,
    nullable: bool,
    properties: BTreeMap<String, Schema>,
    additional: Option<Box<Schema>>,
    /// `additionalProperties: true`.
    additional_any: bool,
    items: Option<Box<Schema>>,
    required: Vec<String>,
    allowed: Option<Vec<Value>>,
    default: Option<Value>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    exclusive_minimum: bool,
    exclusive_maximum: bool,
    min_length: Option<u64>,
    max_length: Option<u64>,
    min_items: Option<u64>,
    max_items: Option<u64>,
    min_properties: Option<u64>,
    max_properties: Option<u64>,
    pattern: Option<Regex>,
    preserve_unknown: bool,
    embedded: bool,
    int_or_string: bool,
    map_keys: Vec<String>,
    is_set: bool,
    all_of: Vec<Schema>,
    any_of: Vec<Schema>,
    one_of: Vec<Schema>,
    not: Option<Box<Schema>>,
}

impl Schema {
    /// Reads the JSON of a schema. What is unknown or malformed constrains nothing.
    pub(super) fn new(value: &Value) -> Self {
        let get = |key: &str| value.get(key);
        let flag = |key: &str| get(key).and_then(Value::as_bool).unwrap_or_default();
        let count = |key: &str| get(key).and_then(Value::as_u64);
        let list = |key: &str| get(key).and_then(Value::as_array).into_iter().flatten();
        let texts = |key: &str| list(key).filter_map(Value::as_str).map(str::to_owned).collect();
        let nested = |key: &str| get(key).filter(|v| v.is_object()).map(|v| Box::new(Self::new(v)));
        Self {
            kind: get("type").and_then(Value::as_str).map(str::to_owned),
            nullable: flag("nullable"),
            properties: get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
                .map(|(name, schema)| (name.clone(), Self::new(schema)))
                .collect(),
            additional: nested("additionalProperties"),
            additional_any: flag("additionalProperties"),
            items: nested("items"),
            required: texts("required"),
            allowed: get("enum").and_then(Value::as_array).cloned(),
            default: get("default").cloned(),
            minimum: get("minimum").and_then(Value::as_f64),
            maximum: get("maximum").and_then(Value::as_f64),
            exclusive_minimum: flag("exclusiveMinimum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            pattern: get("pattern")
                .and_then(Value::as_str)
                .and_then(|text| Regex::new(text).ok()),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            map_keys: texts("x-kubernetes-list-map-keys"),
            is_set: get("x-kubernetes-list-type").and_then(Value::as_str) == Some("set"),
            all_of: list("allOf").map(Self::new).collect(),
            any_of: list("anyOf").map(Self::new).collect(),
            one_of: list("oneOf").map(Self::new).collect(),
            not: nested("not"),
        }
    }

    /// The schema of a member, for merging lists by their keys.
    pub(super) fn member(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(self.additional.as_deref())
    }

    pub(super) fn element(&self) -> Option<&Self> {
        self.items.as_deref()
    }

    /// Keys that tell the elements of a list apart; empty for lists that are replaced as a whole.
    pub(super) fn map_keys(&self) -> &[String] {
        &self.map_keys
    }

    pub(super) fn is_set(&self) -> bool {
        self.is_set
    }

    /// Removes members the schema does not know; their paths go to `pruned`.
    pub(super) fn prune(&self, object: &mut Value, pruned: &mut Vec<String>) {
        self.prune_at(object, "", true, pruned);
    }

    fn prune_at(&self, value: &mut Value, path: &str, is_object: bool, pruned: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                if !self.preserve_unknown && !self.additional_any && self.additional.is_none() {
                    map.retain(|key, _| {
                        let builtin = matches!(key.as_str(), "apiVersion" | "kind" | "metadata");
                        let known = self.properties.contains_key(key) || (is_object && builtin);
                        if !known {
                            pruned.push(join(path, key));
                        }
                        known
                    });
                }
                for (key, member) in map.iter_mut() {
                    if is_object && key == "metadata" {
                        continue;
                    }
                    if let Some(schema) = self.member(key) {
                        schema.prune_at(member, &join(path, key), schema.embedded, pruned);
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                for (index, item) in items.iter_mut().enumerate() {
                    schema.prune_at(item, &format!("{path}[{index}]"), schema.embedded, pruned);
                }
            }
            _ => {}
        }
    }

    /// Fills in defaults, in what is there: an absent object without a default of its own stays absent. A null that may
    /// not be there goes.
    pub(super) fn set_defaults(&self, value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.retain(|name, member| {
                    !member.is_null()
                        || self
                            .member(name)
                            .is_none_or(|schema| schema.nullable || schema.default.is_some())
                });
                for (name, schema) in &self.properties {
                    let absent = map
                        .get(name)
                        .is_none_or(|member| member.is_null() && !schema.nullable);
                    if absent && let Some(default) = &schema.default {
                        map.insert(name.clone(), default.clone());
                    }
                }
                for (key, member) in map.iter_mut() {
                    if let Some(schema) = self.member(key) {
                        schema.set_defaults(member);
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                items.iter_mut().for_each(|item| schema.set_defaults(item));
            }
            _ => {}
        }
    }

    /// Checks an object; every breach becomes a cause.
    pub(super) fn validate(&self, object: &Document, causes: &mut Vec<Cause>) {
        self.required_members(|name| object.contains_key(name), "", causes);
        for (key, member) in object.members() {
            if !matches!(key, "apiVersion" | "kind" | "metadata")
                && let Some(schema) = self.member(key)
            {
                schema.check(member, key, causes);
            }
        }
        if self.is_combined() {
            self.combined(&object.to_value(), "", causes);
        }
    }

    fn is_combined(&self) -> bool {
        !(self.all_of.is_empty() && self.any_of.is_empty() && self.one_of.is_empty() && self.not.is_none())
    }

    fn check(&self, value: &Value, path: &str, causes: &mut Vec<Cause>) {
        if value.is_null() && self.nullable {
            return;
        }
        if !self.type_fits(value) {
            let wanted = if self.int_or_string {
                "integer,string"
            } else {
                self.kind.as_deref().unwrap_or_default()
            };
            causes.push(Cause::wrong_type(path, json_type(value), wanted));
            return;
        }
        if let Some(allowed) = &self.allowed
            && !allowed.contains(value)
        {
            let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
            causes.push(Cause::unsupported(path, value, &allowed));
        }
        match value {
            Value::Number(number) => {
                self.check_number(number.as_f64().unwrap_or_default(), value, path, causes)
            }
            Value::String(text) => self.check_text(text, value, path, causes),
            Value::Array(items) => self.check_items(items, path, causes),
            Value::Object(map) => {
                self.required_members(|name| map.contains_key(name), path, causes);
                self.check_size(map.len(), value, path, causes);
                for (key, member) in map {
                    if let Some(schema) = self.member(key) {
                        schema.check(member, &join(path, key), causes);
                    }
                }
            }
            _ => {}
        }
        self.combined(value, path, causes);
    }

    fn type_fits(&self, value: &Value) -> bool {
        if self.int_or_string {
            return value.is_string() || is_integer(value);
        }
        match self.kind.as_deref() {
            None => true,
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("boolean") => value.is_boolean(),
            Some("integer") => is_integer(value),
            Some("number") => value.is_number(),
            Some(_) => true,
        }
    }

    fn required_members(&self, has: impl Fn(&str) -> bool, path: &str, causes: &mut Vec<Cause>) {
        for name in &self.required {
            if !has(name) {
                causes.push(Cause::required(join(path, name), ""));
            }
        }
    }

    fn check_number(&self, number: f64, value: &Value, path: &str, causes: &mut Vec<Cause>) {
        let mut refuse = |what: &str, bound: f64| {
            causes.push(Cause::invalid(
                path,
                value,
                &format!("{path} in body should be {what} {bound}"),
            ));
        };
        match self.minimum {
            Some(bound) if self.exclusive_minimum && number <= bound => refuse("greater than", bound),
            Some(bound) if number < bound => refuse("greater than or equal to", bound),
            _ => {}
        }
        match self.maximum {
            Some(bound) if self.exclusive_maximum && number >= bound => refuse("less than", bound),
            Some(bound) if number > bound => refuse("less than or equal to", bound),
            _ => {}
        }
    }

    fn check_text(&self, text: &str, value: &Value, path: &str, causes: &mut Vec<Cause>) {
        let length = text.chars().count() as u64;
        // Only the first violation is reported.
        if let Some(limit) = self.max_length.filter(|limit| length > *limit) {
            causes.push(Cause::too_long(path, limit));
        } else if let Some(limit) = self.min_length.filter(|limit| length < *limit) {
            let why = format!("{path} in body should be at least {limit} chars long");
            causes.push(Cause::invalid(path, value, &why));
        } else if let Some(pattern) = self.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            let why = format!("{path} in body should match '{}'", pattern.as_str());
            causes.push(Cause::invalid(path, value, &why));
        }
    }

    fn check_items(&self, items: &[Value], path: &str, causes: &mut Vec<Cause>) {
        if let Some(limit) = self.max_items.filter(|limit| items.len() as u64 > *limit) {
            causes.push(Cause::too_many(path, items.len(), limit));
        }
        if let Some(limit) = self.min_items.filter(|limit| (items.len() as u64) < *limit) {
            let why = format!("{path} in body should have at least {limit} items");
            causes.push(Cause::invalid(path, &Value::from(items.len()), &why));
        }
        let Some(schema) = &self.items else { return };
        for (index, item) in items.iter().enumerate() {
            schema.check(item, &format!("{path}[{index}]"), causes);
        }
        if self.map_keys.is_empty() && !self.is_set {
            return;
        }
        let mut seen: Vec<Vec<&Value>> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let key: Vec<&Value> = if self.is_set {
                vec![item]
            } else {
                self.map_keys.iter().filter_map(|key| item.get(key)).collect()
            };
            if seen.contains(&key) {
                causes.push(Cause::duplicate(format!("{path}[{index}]"), item));
            }
            seen.push(key);
        }
    }

    fn check_size(&self, size: usize, value: &Value, path: &str, causes: &mut Vec<Cause>) {
        if let Some(limit) = self.max_properties.filter(|limit| size as u64 > *limit) {
            causes.push(Cause::too_many(path, size, limit));
        }
        if let Some(limit) = self.min_properties.filter(|limit| (size as u64) < *limit) {
            let why = format!("{path} in body should have at least {limit} properties");
            causes.push(Cause::invalid(path, value, &why));
        }
    }

    fn combined(&self, value: &Value, path: &str, causes: &mut Vec<Cause>) {
        let fits = |schema: &Self| {
            let mut found = Vec::new();
            schema.check(value, path, &mut found);
            found.is_empty()
        };
        for schema in &self.all_of {
            schema.check(value, path, causes);
        }
        if !self.any_of.is_empty() && !self.any_of.iter().any(fits) {
            let why = format!("{path} in body must validate at least one schema (anyOf)");
            causes.push(Cause::invalid(path, &Value::from(""), &why));
        }
        if !self.one_of.is_empty() && self.one_of.iter().filter(|schema| fits(schema)).count() != 1 {
            let why = format!("{path} in body must validate one and only one schema (oneOf)");
            causes.push(Cause::invalid(path, &Value::from(""), &why));
        }
        if self.not.as_deref().is_some_and(fits) {
            let why = format!("{path} in body must not validate the schema (not)");
            causes.push(Cause::invalid(path, &Value::from(""), &why));
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_integer(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
