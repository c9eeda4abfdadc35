//! Derives the types of fields and the maximum sizes of values from a schema, as an API server does for its rules.
//!
//! The source is `SchemaDeclType` of Kubernetes' `apiserver/pkg/cel/common`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// Maximum size of a request in bytes, which bounds every value without a bound of its own.
pub(super) const MAX_REQUEST_BYTES: u64 = 3 * 1024 * 1024;

/// The type of an expression, to the extent that costs depend on it.
#[derive(Clone, Debug)]
pub(super) enum Type<'s> {
    /// A number, a boolean or a time.
    Scalar,
    /// A string or bytes.
    Text,
    List(Box<Self>),
    /// A map with this type of values; keys are strings.
    Map(Box<Self>),
    Object(&'s JSONSchemaProps),
    Optional(Box<Self>),
    /// A type that is unknown before the rule runs, or that is not modeled here.
    Unknown,
}

impl<'s> Type<'s> {
    /// Returns the type of a schema's values; `None` if rules cannot see them.
    pub(super) fn of(schema: &'s JSONSchemaProps) -> Option<Self> {
        if schema.x_kubernetes_int_or_string == Some(true) {
            return Some(Self::Unknown);
        }
        Some(match schema.type_.as_deref()? {
            "array" => Self::List(Box::new(Self::of(items(schema)?)?)),
            "object" => match values(schema) {
                Some(values) => Self::Map(Box::new(Self::of(values)?)),
                None => Self::Object(schema),
            },
            "string" => match schema.format.as_deref() {
                Some("duration" | "date" | "date-time") => Self::Scalar,
                _ => Self::Text,
            },
            _ => Self::Scalar,
        })
    }

    pub(super) fn is_scalar(&self) -> bool {
        match self {
            Self::Optional(of) => of.is_scalar(),
            other => matches!(other, Self::Scalar),
        }
    }

    /// Returns the type of a list's items or of a map's values.
    pub(super) fn element(&self) -> Self {
        match self {
            Self::List(of) | Self::Map(of) => (**of).clone(),
            Self::Optional(of) => Self::Optional(Box::new(of.element())),
            _ => Self::Unknown,
        }
    }
}

/// Returns the schema of a list's items.
pub(super) fn items(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match schema.items.as_ref()? {
        JSONSchemaPropsOrArray::Schema(items) => Some(items),
        JSONSchemaPropsOrArray::Schemas(_) => None,
    }
}

/// Returns the schema of a map's values.
pub(super) fn values(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match schema.additional_properties.as_ref()? {
        JSONSchemaPropsOrBool::Schema(values) => Some(values),
        JSONSchemaPropsOrBool::Bool(_) => None,
    }
}

/// Returns the field with this escaped name.
pub(super) fn property<'s>(
    schema: &'s JSONSchemaProps,
    name: &str,
) -> Option<(&'s str, &'s JSONSchemaProps)> {
    let properties = schema.properties.as_ref()?;
    let plain = properties
        .get_key_value(name)
        .filter(|(key, _)| escape(key) == name);
    let found = plain.or_else(|| properties.iter().find(|(key, _)| escape(key) == name));
    found.map(|(key, schema)| (key.as_str(), schema))
}

/// Reserved words, which rules escape in names of fields.
const RESERVED_WORDS: &str = "true false null in as break const continue else for function if import let loop package namespace return var \
    void while";

/// Returns the escaped name of a field, as rules use it.
pub(super) fn escape(name: &str) -> String {
    if RESERVED_WORDS.split(' ').any(|word| word == name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}

/// The maximum number of characters, items or entries of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    pub(super) max: u64,
    /// The keyword that the schema lacks for a bound.
    pub(super) missing: Option<&'static str>,
}

/// Returns the maximum number of characters, items or entries of a schema's values; 0 for types without a size.
pub(super) fn bound(schema: &JSONSchemaProps) -> Bound {
    let or = |declared: Option<i64>, factor: u64, missing: &'static str, max: u64| match declared {
        Some(declared) => Bound {
            max: u64::try_from(declared).unwrap_or(0) * factor,
            missing: None,
        },
        None => Bound {
            max,
            missing: Some(missing),
        },
    };
    let fixed = |max| Bound { max, missing: None };
    if schema.x_kubernetes_int_or_string == Some(true) {
        return or(schema.max_length, 4, "maxLength", MAX_REQUEST_BYTES - 2);
    }
    match schema.type_.as_deref() {
        Some("array") => {
            let smallest = items(schema).map_or(1, smallest);
            or(
                schema.max_items,
                1,
                "maxItems",
                (MAX_REQUEST_BYTES - 2) / (smallest + 1),
            )
        }
        Some("object") => match values(schema) {
            Some(value) => {
                let max = (MAX_REQUEST_BYTES - 2) / (smallest(value) + 6);
                or(schema.max_properties, 1, "maxProperties", max)
            }
            None => fixed(0),
        },
        Some("string") => match (schema.format.as_deref(), &schema.enum_) {
            (Some("duration" | "date-time"), _) => fixed(32),
            (Some("date"), _) => fixed(12),
            (Some("byte"), _) => or(schema.max_length, 1, "maxLength", MAX_REQUEST_BYTES - 2),
            (_, Some(words)) if schema.max_length.is_none() => {
                let longest = words
                    .iter()
                    .filter_map(|word| word.0.as_str())
                    .map(str::len)
                    .max();
                fixed(longest.unwrap_or(0) as u64)
            }
            // A character has up to four bytes.
            _ => or(schema.max_length, 4, "maxLength", MAX_REQUEST_BYTES - 2),
        },
        _ => fixed(0),
    }
}

/// Returns the minimum size in bytes of a schema's values as JSON.
pub(super) fn smallest(schema: &JSONSchemaProps) -> u64 {
    if schema.x_kubernetes_int_or_string == Some(true) {
        return 1;
    }
    match (schema.type_.as_deref(), schema.format.as_deref()) {
        (Some("object"), _) if values(schema).is_none() => {
            let required = schema.required.iter().flatten().filter_map(|name| {
                let field = schema.properties.as_ref()?.get(name)?;
                let counts = field.default.is_none() && Type::of(field).is_some();
                counts.then(|| name.len() as u64 + smallest(field) + 4)
            });
            2 + required.sum::<u64>()
        }
        (Some("string"), Some("duration")) => 3,
        (Some("string"), Some("date")) => 12,
        (Some("string"), Some("date-time")) => 21,
        (Some("array" | "object" | "string"), _) => 2,
        (Some("boolean"), _) => 4,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_the_names_that_rules_have_for_them() {
        let field = JSONSchemaProps::default();
        let names = ["namespace", "a-b", "plain"];
        let schema = JSONSchemaProps {
            properties: Some(names.map(|name| (name.to_owned(), field.clone())).into()),
            ..JSONSchemaProps::default()
        };
        let found = |name: &str| property(&schema, name).map(|(name, _)| name.to_owned());
        assert_eq!(found("__namespace__").as_deref(), Some("namespace"));
        assert_eq!(found("a__dash__b").as_deref(), Some("a-b"));
        assert_eq!(found("plain").as_deref(), Some("plain"));
        assert_eq!(found("namespace"), None);
    }
}
