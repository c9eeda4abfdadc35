//! Checks an object against the OpenAPI schema of its custom resource definition, as the API server does, so that a
//! file can be checked without a server. Adds remedies to the findings of [`kube_schema`].
//!
//! Rules in CEL are not evaluated.

use kube_schema::{Combination, Schema, Step, Type, Unit, Violation, ViolationKind, field, item};
use serde_json::Value;

use crate::api::schema::object_meta;
use crate::job::{FieldErrors, nearest};

use super::misplaced::places;
use super::texts::MUST_BE_SET;

/// The problem of an unknown field.
pub const UNKNOWN_FIELD: &str = "unknown field";

/// The maximum number of known fields that are named in a remedy. A longer list would not help the user.
const MAX_NAMED_FIELDS: usize = 12;

/// The number of errors in an object up to which the right place of a field is searched. Each search visits the whole
/// schema.
const MAX_ERRORS_WITH_SEARCH: usize = 50;

/// Returns the errors of `object` by `schema`, the schema of a definition's version.
///
/// A null property counts as absent, as in the API server. A null value in a map is not an error, because the API server
/// drops it. It is added to `nulls`, because it is likely a mistake.
pub(crate) fn check(schema: &Schema, object: &Value, nulls: &mut FieldErrors) -> FieldErrors {
    let mut errors = FieldErrors::default();
    if !object.is_object() {
        wrong_type("", object, Type::Object, None, &mut errors);
        return errors;
    }
    for violation in schema.check(object) {
        let is_null = matches!(violation.kind, ViolationKind::Null { .. });
        if let (true, [.., map, Step::Member(key)]) = (is_null, violation.path.steps()) {
            null(path_of("", violation.path.steps()), map, key, nulls);
            continue;
        }
        let searched = errors.iter().count() < MAX_ERRORS_WITH_SEARCH;
        let places = searched.then(|| remedies(schema, object, &violation)).flatten();
        push_violation(&violation, "", places, &mut errors);
    }
    if let Some(metadata) = object.get("metadata").filter(|m| !m.is_null()) {
        for violation in object_meta().check_value(metadata) {
            let steps: Vec<_> = [Step::Member("metadata")]
                .iter()
                .chain(violation.path.steps())
                .copied()
                .collect();
            let remedy = match &violation.kind {
                ViolationKind::Unknown { known } => elsewhere(schema, object, &steps, known),
                _ => None,
            };
            push_violation(&violation, "metadata", remedy, &mut errors);
        }
    }
    errors
}

/// Adds the errors of `value`, which is at `path`, by `schema`. Returns true if there are none.
pub(super) fn check_part(schema: &Schema, value: &Value, path: &str, errors: &mut FieldErrors) -> bool {
    let violations = schema.check_value(value);
    for violation in &violations {
        push_violation(violation, path, remedies(schema, value, violation), errors);
    }
    violations.is_empty()
}

/// Adds the warning about a key without a value.
fn null(path: String, map: &Step<'_>, key: &str, nulls: &mut FieldErrors) {
    let lost = match map {
        Step::Member("limits" | "requests") => format!("no {key} is requested"),
        Step::Member("minResources") => format!("the gang does not wait for {key}"),
        Step::Member(map) => format!("{map} has no {key}"),
        Step::Item(_) => format!("there is no {key}"),
    };
    let problem = format!("null is dropped by the API server, so {lost}");
    nulls.push(path, problem, "set a value or remove it");
}

/// Returns the remedy for a value that fits another place.
fn remedies(schema: &Schema, object: &Value, violation: &Violation<'_>) -> Option<String> {
    let steps = violation.path.steps();
    let (Step::Member(_), around) = steps.split_last()? else {
        return None;
    };
    match &violation.kind {
        ViolationKind::Unknown { known } => elsewhere(schema, object, steps, known),
        // The values of a map are one level too deep.
        ViolationKind::Type {
            value: Value::Object(members),
            wanted,
            ..
        } if *wanted != Type::Object => {
            let Some(Step::Member(map)) = around.last() else {
                return None;
            };
            let values = around.iter().try_fold(schema, |schema, step| match step {
                Step::Member(key) => schema.member(key),
                Step::Item(_) => schema.items(),
            });
            let values = values?.map_values()?;
            let (first, _) = members.iter().next()?;
            let fits = members.values().all(|value| values.fits(value));
            let up = field(&path_of("", around), first);
            fits.then(|| format!("move it to {up}, because {map} takes plain values"))
        }
        _ => None,
    }
}

/// Returns the remedy for an unknown field that belongs to another place. Returns None if its name differs from a
/// known field here only by case.
fn elsewhere(schema: &Schema, object: &Value, steps: &[Step<'_>], known: &[&str]) -> Option<String> {
    let Step::Member(key) = steps.last()? else {
        return None;
    };
    let typo = nearest(key, known.iter().copied());
    if typo.is_some_and(|typo| typo.eq_ignore_ascii_case(key)) {
        return None;
    }
    let value = steps.iter().try_fold(object, |value, step| match step {
        Step::Member(key) => value.get(key),
        Step::Item(index) => value.get(index),
    })?;
    let places = places(schema, object, steps, value);
    (!places.is_empty()).then(|| move_to(&places))
}

/// Returns the remedy for a field that belongs to one of the places.
pub(super) fn move_to(places: &[String]) -> String {
    match places {
        [first @ .., before, last] => {
            let before = [first, &[format!("{before} or {last}")]].concat();
            format!("move it to {}", before.join(", "))
        }
        one => format!("move it to {}", one.concat()),
    }
}

fn path_of(base: &str, steps: &[Step<'_>]) -> String {
    steps.iter().fold(base.to_owned(), |path, step| match step {
        Step::Member(key) => field(&path, key),
        Step::Item(index) => item(&path, *index),
    })
}

/// Adds an error for a violation, whose path is relative to `base`. `remedy` is used for a value in a wrong place.
fn push_violation(violation: &Violation<'_>, base: &str, remedy: Option<String>, errors: &mut FieldErrors) {
    let steps = violation.path.steps();
    let path = path_of(base, steps);
    match &violation.kind {
        ViolationKind::Missing => errors.push(path, MUST_BE_SET, ""),
        ViolationKind::Unknown { known } => {
            let key = match steps.last() {
                Some(Step::Member(key)) => *key,
                _ => "",
            };
            let remedy = remedy.unwrap_or_else(|| unknown_remedy(key, known));
            errors.push(path, UNKNOWN_FIELD, remedy);
        }
        ViolationKind::Null { .. } => errors.push(path, "must not be null", "set a value or remove it"),
        ViolationKind::Type { value, wanted, .. } => wrong_type(path, value, *wanted, remedy, errors),
        ViolationKind::Unsupported { value, allowed } => {
            let words = allowed.iter().filter_map(Value::as_str);
            let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
            errors.unknown_word(path, value.as_str().unwrap_or_default(), &words);
        }
        ViolationKind::TooSmall {
            value,
            bound,
            exclusive: false,
        } => errors.too_small(path, value, *bound),
        ViolationKind::TooSmall { value, bound, .. } => {
            errors.push(path, format!("must be more than {bound} (is {value})"), "");
        }
        ViolationKind::TooBig {
            value,
            bound,
            exclusive: false,
        } => errors.too_big(path, value, *bound),
        ViolationKind::TooBig { value, bound, .. } => {
            errors.push(path, format!("must be less than {bound} (is {value})"), "");
        }
        ViolationKind::Bits { value, bits } => {
            errors.push(path, format!("must fit in {bits} bits (is {value})"), "");
        }
        ViolationKind::TooFew {
            unit, found, limit, ..
        } => {
            errors.push(path, must_count("at least", *limit, *unit, *found), "");
        }
        ViolationKind::TooMany { unit, found, limit } => {
            errors.push(path, must_count("at most", *limit, *unit, *found), "");
        }
        ViolationKind::Pattern { value, pattern } => {
            errors.push(path, format!("must match {pattern} (is {value})"), "");
        }
        ViolationKind::Duplicate { .. } => errors.push(path, "must not be a duplicate", "remove one of them"),
        ViolationKind::Combined(combination) => {
            let problem = match combination {
                Combination::AnyOf => "must match at least one schema in anyOf",
                Combination::OneOf => "must match exactly one schema in oneOf",
                Combination::Not => "must not match the schema in not",
            };
            errors.push(path, problem, "");
        }
    }
}

fn unknown_remedy(key: &str, known: &[&str]) -> String {
    if let Some(name) = nearest(key, known.iter().copied()) {
        return format!("did you mean {name}?");
    }
    if known.is_empty() || known.len() > MAX_NAMED_FIELDS {
        return "remove it".to_owned();
    }
    format!("use one of {}, or remove it", known.join(", "))
}

/// Returns the problem of a text, list or map with the wrong number of characters, items or entries.
fn must_count(bound: &str, limit: u64, unit: Unit, found: usize) -> String {
    let (verb, one, many) = match unit {
        Unit::Characters => ("be", "character", "characters"),
        Unit::Items => ("have", "item", "items"),
        Unit::Entries => ("have", "entry", "entries"),
    };
    let unit = if limit == 1 { one } else { many };
    format!("must {verb} {bound} {limit} {unit} (has {found})")
}

/// Adds the error of a value of the wrong type. Without a `remedy`, a boolean or number in the place of a string is to
/// be quoted.
fn wrong_type(
    path: impl Into<String>,
    value: &Value,
    wanted: Type,
    remedy: Option<String>,
    errors: &mut FieldErrors,
) {
    let must = match wanted {
        Type::Object => "an object",
        Type::Array => "a list",
        Type::String => "a string",
        Type::Boolean => "true or false",
        Type::Integer => "an integer",
        Type::Number => "a number",
        Type::IntOrString => "an integer or a string",
    };
    let is = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => format!("{text:?}"),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    };
    let path = path.into();
    let remedy = remedy.unwrap_or_else(|| match (wanted, value) {
        (Type::String | Type::IntOrString, Value::Bool(_) | Value::Number(_)) => {
            "put it in quotes".to_owned()
        }
        (Type::Integer | Type::Number | Type::Boolean, Value::String(text)) if is_quoted(text, wanted) => {
            "remove the quotes".to_owned()
        }
        (Type::Array, Value::String(line)) if path.ends_with(".command") || path.ends_with(".args") => {
            words(line)
        }
        _ => String::new(),
    });
    errors.push(path, format!("must be {must} (is {is})"), remedy);
}

/// True if a text is a value of the wanted type in quotes.
fn is_quoted(text: &str, wanted: Type) -> bool {
    match wanted {
        Type::Integer => text.trim().parse::<i64>().is_ok(),
        Type::Number => text.trim().parse::<f64>().is_ok_and(f64::is_finite),
        _ => ["true", "false"].contains(&text.trim()),
    }
}

/// Returns the remedy for a command line in place of its words. Only a shell can split a line with quotes or
/// variables.
fn words(line: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " -_./=:".contains(c);
    // YAML reads 0.1 as a number, and yes as a boolean.
    let quoted = |word: &str| match word
        .trim_start_matches(['-', '/', '.'])
        .starts_with(|c: char| c.is_ascii_alphabetic())
        && !["true", "false", "yes", "no", "on", "off", "null"].contains(&word.to_ascii_lowercase().as_str())
        && !word.contains(':')
    {
        true => word.to_owned(),
        false => format!("{word:?}"),
    };
    match line.chars().all(is_plain) {
        true => format!(
            "write [{}]",
            line.split_whitespace().map(quoted).collect::<Vec<_>>().join(", ")
        ),
        false => "write a list of words, such as [python3, train.py]".to_owned(),
    }
}

#[cfg(test)]
mod tests;
