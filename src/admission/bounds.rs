//! Turns the bounds of fields into rules. A schema's own `enum` has another message, and prevents the evaluation of
//! all rules, so that the user would see only one mistake at a time.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

use super::add;
use crate::job::Rule;
use crate::job::rule as cel;

/// Replaces the enumerations and bounds at and below `schema`, which is at `path`, except in pod templates.
pub(super) fn to_rules(schema: &mut JSONSchemaProps, path: &str) {
    words(schema);
    if let Some(min) = schema.minimum.take() {
        let rule = Rule::with_message_of(format!("self >= {min}"), |e| e.too_small("", "%d", min));
        add(schema, rule.with("self"));
    }
    if let Some(max) = schema.maximum.take() {
        let rule = Rule::with_message_of(format!("self <= {max}"), |e| e.too_big("", "%d", max));
        add(schema, rule.with("self"));
    }
    if path.ends_with(".schedulingPolicy.queue") {
        // The gang scheduler has put the group in this queue. The field is immutable once set, as in the Go operator.
        add(
            schema,
            Rule::new("self == oldSelf", format!("{path} is immutable")),
        );
    }
    for (name, property) in schema.properties.iter_mut().flatten() {
        if name != "template" {
            to_rules(property, &format!("{path}.{name}"));
        }
    }
    if let (Some(JSONSchemaPropsOrArray::Schema(item)), Some(_)) = (&mut schema.items, schema.max_items) {
        to_rules(item, path);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(value)) = &mut schema.additional_properties {
        to_rules(value, path);
    }
}

fn words(schema: &mut JSONSchemaProps) {
    let Some(known) = schema.enum_.take() else { return };
    let known: Vec<&str> = known.iter().filter_map(|word| word.0.as_str()).collect();
    let named: Vec<&str> = known.iter().copied().filter(|w| !w.is_empty()).collect();
    if let Some(description) = &mut schema.description {
        // The words that `kubectl explain` would show for the enumeration.
        description.push_str(&match named[..] {
            [only] => format!(" The only value is {only}."),
            _ => format!(" One of {}.", named.join(", ")),
        });
    }
    let rule = Rule::with_message_of(format!("self in {}", cel::list(known.iter().copied())), |e| {
        e.unknown_word("", "%s", &named);
    });
    add(schema, rule.with("self"));
}
