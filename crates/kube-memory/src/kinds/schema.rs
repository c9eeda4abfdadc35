//! Violations of a custom resource's schema, in the API server's words.

use kube_schema::{Combination, Schema, Type, Unit, Violation, ViolationKind};
use serde_json::Value;

use crate::object::{cause::Cause, document::Document};

/// Checks a normalized object. Each violation becomes a cause.
pub(crate) fn check(schema: &Schema, object: &Document, causes: &mut Vec<Cause>) {
    if schema.is_combined() {
        causes.extend(schema.check(&object.to_value()).iter().flat_map(causes_of));
    } else {
        let members: Vec<_> = object.members().collect();
        causes.extend(schema.check_members(&members).iter().flat_map(causes_of));
    }
}

fn causes_of(violation: &Violation<'_>) -> impl Iterator<Item = Cause> {
    cause(violation).into_iter().chain(out_of_range(violation))
}

/// The server checks separately that a number is in the range of its type and format, and names no field then.
fn out_of_range(violation: &Violation<'_>) -> Option<Cause> {
    let bits = match &violation.kind {
        ViolationKind::Type {
            value: Value::Number(_),
            wanted: Type::Integer,
            bits,
        } => *bits,
        ViolationKind::Bits { bits, .. } => Some(*bits),
        _ => return None,
    };
    let format = match bits {
        Some(bits) => format!("with format int{bits}"),
        None => "(default format)".to_owned(),
    };
    let why = format!(
        "Checked value must be of type integer {format} in {}",
        violation.path
    );
    Some(Cause::invalid_text("<nil>", "", &why))
}

/// Returns `None` for a violation that a server accepts, or that has no cause with a field.
fn cause(violation: &Violation<'_>) -> Option<Cause> {
    let at = violation.path.to_string();
    let invalid = |value: &Value, should: &str| {
        let why = format!("{at} in body {should}");
        Some(Cause::invalid(at.as_str(), value, &why))
    };
    match &violation.kind {
        // The object was pruned, and has no null that its schema would drop.
        ViolationKind::Unknown { .. } | ViolationKind::Null { wanted: None } | ViolationKind::Bits { .. } => {
            None
        }
        ViolationKind::Missing => Some(Cause::required(at, "")),
        ViolationKind::Null { wanted: Some(wanted) } => {
            Some(Cause::wrong_type(at, "null", type_name(*wanted)))
        }
        // The format is only for values that Go decodes as they are.
        ViolationKind::Type {
            value,
            bits: Some(bits),
            ..
        } if !(value.is_string() || value.is_array()) => {
            let found = if value.is_number() { "float64" } else { "" };
            Some(Cause::wrong_type(at, found, &format!("int{bits}")))
        }
        ViolationKind::Type { value, wanted, .. } => {
            Some(Cause::wrong_type(at, json_type(value), type_name(*wanted)))
        }
        ViolationKind::Unsupported { value, allowed } => {
            let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
            Some(Cause::unsupported(at, value, &allowed))
        }
        ViolationKind::TooSmall {
            value,
            bound,
            exclusive,
        } => {
            let than = if *exclusive {
                "greater than"
            } else {
                "greater than or equal to"
            };
            invalid(value, &format!("should be {than} {bound}"))
        }
        ViolationKind::TooBig {
            value,
            bound,
            exclusive,
        } => {
            let than = if *exclusive {
                "less than"
            } else {
                "less than or equal to"
            };
            invalid(value, &format!("should be {than} {bound}"))
        }
        ViolationKind::TooMany {
            unit: Unit::Characters,
            limit,
            ..
        } => Some(Cause::too_long(at, *limit)),
        ViolationKind::TooMany { found, limit, .. } => Some(Cause::too_many(at, *found, *limit)),
        ViolationKind::TooFew {
            value,
            unit,
            found,
            limit,
        } => match unit {
            Unit::Characters => invalid(value, &format!("should be at least {limit} chars long")),
            Unit::Items => invalid(
                &Value::from(*found),
                &format!("should have at least {limit} items"),
            ),
            Unit::Entries => invalid(value, &format!("should have at least {limit} properties")),
        },
        ViolationKind::Pattern { value, pattern } => invalid(value, &format!("should match '{pattern}'")),
        ViolationKind::Duplicate { value } => Some(Cause::duplicate(at, value)),
        ViolationKind::Combined(combination) => {
            let must = match combination {
                Combination::AnyOf => "must validate at least one schema (anyOf)",
                Combination::OneOf => "must validate one and only one schema (oneOf)",
                Combination::Not => "must not validate the schema (not)",
            };
            invalid(&Value::from(""), must)
        }
    }
}

fn type_name(wanted: Type) -> &'static str {
    match wanted {
        Type::Object => "object",
        Type::Array => "array",
        Type::String => "string",
        Type::Boolean => "boolean",
        Type::Integer => "integer",
        Type::Number => "number",
        Type::IntOrString => "integer,string",
    }
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() == 0.0) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
