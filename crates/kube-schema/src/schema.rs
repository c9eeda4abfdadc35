//! A schema, parsed from a definition.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

/// A structural schema, parsed once for any number of objects.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    pub(crate) type_: Option<Type>,
    pub(crate) nullable: bool,
    pub(crate) properties: BTreeMap<String, Schema>,
    pub(crate) additional: Option<Box<Schema>>,
    /// True for `additionalProperties: true`.
    pub(crate) additional_any: bool,
    pub(crate) items: Option<Box<Schema>>,
    pub(crate) required: Vec<String>,
    pub(crate) allowed: Option<Vec<Value>>,
    pub(crate) default: Option<Value>,
    /// The bits of an integer.
    pub(crate) bits: Option<u32>,
    pub(crate) minimum: Option<f64>,
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) exclusive_maximum: bool,
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) min_items: Option<u64>,
    pub(crate) max_items: Option<u64>,
    pub(crate) min_properties: Option<u64>,
    pub(crate) max_properties: Option<u64>,
    pub(crate) pattern: Option<Regex>,
    pub(crate) preserve_unknown: bool,
    /// The value is a whole Kubernetes object.
    pub(crate) embedded: bool,
    pub(crate) map_keys: Vec<String>,
    pub(crate) is_set: bool,
    pub(crate) all_of: Vec<Schema>,
    pub(crate) any_of: Vec<Schema>,
    pub(crate) one_of: Vec<Schema>,
    pub(crate) not: Option<Box<Schema>>,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// An object or a map.
    Object,
    /// A list.
    Array,
    /// A text.
    String,
    /// True or false.
    Boolean,
    /// A number without a fraction.
    Integer,
    /// A number.
    Number,
    /// `x-kubernetes-int-or-string`.
    IntOrString,
}

impl Type {
    /// Returns `None` for an unknown type, which constrains nothing.
    fn new(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            _ => return None,
        })
    }

    fn is_of(self, value: &Value) -> bool {
        match self {
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
            Self::String => value.is_string(),
            Self::Boolean => value.is_boolean(),
            Self::Integer => is_integer(value),
            Self::Number => value.is_number(),
            Self::IntOrString => value.is_string() || is_integer(value),
        }
    }
}

/// Returns true for floating-point numbers without a fraction too, because numbers beyond 64 bits are parsed as such.
fn is_integer(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

impl Schema {
    /// Parses the JSON of a schema. Unknown or malformed parts constrain nothing.
    pub fn new(value: &Value) -> Self {
        let get = |key: &str| value.get(key);
        let flag = |key: &str| get(key).and_then(Value::as_bool).unwrap_or_default();
        let number = |key: &str| get(key).and_then(Value::as_f64);
        let count = |key: &str| get(key).and_then(Value::as_u64);
        let text = |key: &str| get(key).and_then(Value::as_str);
        let list = |key: &str| get(key).and_then(Value::as_array).into_iter().flatten();
        let texts = |key: &str| list(key).filter_map(Value::as_str).map(str::to_owned).collect();
        let nested = |key: &str| get(key).filter(|v| v.is_object()).map(|v| Box::new(Self::new(v)));
        let properties = get("properties").and_then(Value::as_object).into_iter().flatten();
        Self {
            type_: if flag("x-kubernetes-int-or-string") {
                Some(Type::IntOrString)
            } else {
                text("type").and_then(Type::new)
            },
            nullable: flag("nullable"),
            properties: properties
                .map(|(name, schema)| (name.clone(), Self::new(schema)))
                .collect(),
            additional: nested("additionalProperties"),
            additional_any: flag("additionalProperties"),
            items: nested("items"),
            required: texts("required"),
            allowed: get("enum").and_then(Value::as_array).cloned(),
            default: get("default").cloned(),
            bits: match text("format") {
                Some("int32") => Some(32),
                Some("int64") => Some(64),
                _ => None,
            },
            minimum: number("minimum"),
            maximum: number("maximum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            pattern: text("pattern").and_then(|pattern| Regex::new(pattern).ok()),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            map_keys: texts("x-kubernetes-list-map-keys"),
            is_set: text("x-kubernetes-list-type") == Some("set"),
            all_of: list("allOf").map(Self::new).collect(),
            any_of: list("anyOf").map(Self::new).collect(),
            one_of: list("oneOf").map(Self::new).collect(),
            not: nested("not"),
        }
    }

    /// Returns the type that a value must have, if the schema has one.
    pub fn type_(&self) -> Option<Type> {
        self.type_
    }

    /// Returns true if the schema allows null.
    pub fn is_nullable(&self) -> bool {
        self.nullable
    }

    /// Returns the schema of a property.
    pub fn property(&self, name: &str) -> Option<&Self> {
        self.properties.get(name)
    }

    /// Returns the schema of a member: that of the property with this name, or else that of any key.
    pub fn member(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(self.additional.as_deref())
    }

    /// Returns the properties that an object must have.
    pub fn required(&self) -> &[String] {
        &self.required
    }

    /// Returns the properties, ordered by name.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &Self)> {
        self.properties
            .iter()
            .map(|(name, schema)| (name.as_str(), schema))
    }

    /// Returns the schema of the values of a map, whose keys may be any text.
    pub fn map_values(&self) -> Option<&Self> {
        self.additional.as_deref()
    }

    /// Returns the schema of a list's items.
    pub fn items(&self) -> Option<&Self> {
        self.items.as_deref()
    }

    /// Returns the keys that identify the items of a list; empty for lists that are replaced as a whole.
    pub fn map_keys(&self) -> &[String] {
        &self.map_keys
    }

    /// Returns true if a list is a set.
    pub fn is_set(&self) -> bool {
        self.is_set
    }

    /// Returns true if an object as a whole must fit further schemas: `allOf`, `anyOf`, `oneOf` or `not`.
    pub fn is_combined(&self) -> bool {
        !(self.all_of.is_empty() && self.any_of.is_empty() && self.one_of.is_empty() && self.not.is_none())
    }

    /// Returns true if a value fits the type and format. Its parts are not checked.
    pub fn fits(&self, value: &Value) -> bool {
        if value.is_null() {
            return self.nullable;
        }
        self.is_of_type(value) && self.is_within_bits(value)
    }

    pub(crate) fn is_of_type(&self, value: &Value) -> bool {
        self.type_.is_none_or(|type_| type_.is_of(value))
    }

    pub(crate) fn is_within_bits(&self, value: &Value) -> bool {
        !value.is_number()
            || match self.bits {
                Some(32) => value.as_i64().is_some_and(|n| i32::try_from(n).is_ok()),
                Some(_) => value.is_i64(),
                None => true,
            }
    }

    /// Returns true if members are allowed that the schema does not name.
    pub(crate) fn is_open(&self) -> bool {
        self.preserve_unknown || self.additional_any || self.additional.is_some()
    }
}
