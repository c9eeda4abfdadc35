//! Finds the violations in an object, in the order in which an API server reports them.

use serde_json::{Map, Value};

use crate::{
    is_type_or_metadata,
    path::At,
    schema::Schema,
    violation::{Combination, Unit, Violation, ViolationKind},
};

impl Schema {
    /// Returns the violations in a Kubernetes object. Its `apiVersion`, `kind` and `metadata` are ignored.
    pub fn check<'a>(&'a self, object: &'a Value) -> Vec<Violation<'a>> {
        let mut check = Check::default();
        match object {
            Value::Object(members) => {
                check.object(self, members, object, Context::Object, At::Here);
                check.combined(self, object, At::Here);
            }
            other => check.value(self, other, At::Here),
        }
        check.found
    }

    /// Returns the violations in a Kubernetes object that is not stored as one value. Pass all of its members; the
    /// metadata may be left out. The schemas that the object as a whole must fit are not checked; see
    /// [`Schema::is_combined`].
    pub fn check_members<'a>(&'a self, members: &[(&'a str, &'a Value)]) -> Vec<Violation<'a>> {
        let mut check = Check::default();
        let get = |name: &str| {
            members
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| *value)
        };
        check.required(self, get, Context::Object, At::Here);
        check.members(self, members.iter().copied(), Context::Object, At::Here);
        check.found
    }

    /// Returns the violations in a value that is not a Kubernetes object, such as metadata.
    pub fn check_value<'a>(&'a self, value: &'a Value) -> Vec<Violation<'a>> {
        let mut check = Check::default();
        check.value(self, value, At::Here);
        check.found
    }
}

/// The parent of members.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    /// The Kubernetes object under check.
    Object,
    /// A Kubernetes object within it.
    Embedded,
    /// Any other value.
    Value,
}

#[derive(Default)]
struct Check<'a> {
    found: Vec<Violation<'a>>,
    /// True within a combined schema. Such a schema only narrows another schema of the same value. It does not decide
    /// which fields are unknown, which may be null, and how many bits they have.
    is_part: bool,
}

impl<'a> Check<'a> {
    fn push(&mut self, at: At<'_, 'a>, kind: ViolationKind<'a>) {
        let path = at.path();
        self.found.push(Violation { path, kind });
    }

    fn value(&mut self, schema: &'a Schema, value: &'a Value, at: At<'_, 'a>) {
        if value.is_null() && schema.nullable {
            return;
        }
        if value.is_null() && !self.is_part {
            self.push(at, ViolationKind::Null { wanted: schema.type_ });
            if schema.type_.is_some() {
                return;
            }
        }
        if let Some(wanted) = schema.type_
            && !schema.is_of_type(value)
        {
            return self.push(
                at,
                ViolationKind::Type {
                    value,
                    wanted,
                    bits: schema.bits,
                },
            );
        }
        if let Some(allowed) = &schema.allowed
            && !allowed.contains(value)
        {
            self.push(at, ViolationKind::Unsupported { value, allowed });
        }
        match value {
            Value::Number(_) => self.number(schema, value, at),
            Value::String(text) => self.text(schema, text, value, at),
            Value::Array(items) => self.items(schema, items, value, at),
            Value::Object(members) => {
                let context = if schema.embedded {
                    Context::Embedded
                } else {
                    Context::Value
                };
                self.object(schema, members, value, context, at);
            }
            Value::Null | Value::Bool(_) => {}
        }
        self.combined(schema, value, at);
    }

    fn object(
        &mut self,
        schema: &'a Schema,
        members: &'a Map<String, Value>,
        value: &'a Value,
        context: Context,
        at: At<'_, 'a>,
    ) {
        self.required(schema, |name| members.get(name), context, at);
        let (min, max) = (schema.min_properties, schema.max_properties);
        self.too_many(max, members.len(), Unit::Entries, at);
        self.too_few(min, members.len(), Unit::Entries, value, at);
        let members = members.iter().map(|(key, value)| (key.as_str(), value));
        self.members(schema, members, context, at);
    }

    fn required(
        &mut self,
        schema: &'a Schema,
        get: impl Fn(&str) -> Option<&'a Value>,
        context: Context,
        at: At<'_, 'a>,
    ) {
        for name in &schema.required {
            if context == Context::Object && is_type_or_metadata(name) {
                continue;
            }
            let absent = match get(name) {
                None => true,
                Some(value) => value.is_null() && self.is_dropped(schema, name),
            };
            if absent {
                self.push(at.member(name), ViolationKind::Missing);
            }
        }
    }

    /// Returns true if a null of this property equals a missing property.
    fn is_dropped(&self, schema: &Schema, name: &str) -> bool {
        !self.is_part && schema.property(name).is_some_and(|property| !property.nullable)
    }

    fn members(
        &mut self,
        schema: &'a Schema,
        members: impl Iterator<Item = (&'a str, &'a Value)>,
        context: Context,
        at: At<'_, 'a>,
    ) {
        for (key, value) in members {
            let has_kind = context != Context::Value && is_type_or_metadata(key);
            if has_kind && context == Context::Object {
                continue;
            }
            match schema.member(key) {
                Some(_) if value.is_null() && self.is_dropped(schema, key) => {}
                Some(member) => self.value(member, value, at.member(key)),
                None if has_kind || self.is_part || schema.is_open() => {}
                None => {
                    let known = schema.properties.keys().map(String::as_str).collect();
                    self.push(at.member(key), ViolationKind::Unknown { known });
                }
            }
        }
    }

    fn number(&mut self, schema: &'a Schema, value: &'a Value, at: At<'_, 'a>) {
        let number = value.as_f64().unwrap_or_default();
        let before = self.found.len();
        let exclusive = schema.exclusive_minimum;
        let is_below = |bound: &f64| number < *bound || (exclusive && number == *bound);
        if let Some(bound) = schema.minimum.filter(is_below) {
            self.push(
                at,
                ViolationKind::TooSmall {
                    value,
                    bound,
                    exclusive,
                },
            );
        }
        let exclusive = schema.exclusive_maximum;
        let is_above = |bound: &f64| number > *bound || (exclusive && number == *bound);
        if let Some(bound) = schema.maximum.filter(is_above) {
            self.push(
                at,
                ViolationKind::TooBig {
                    value,
                    bound,
                    exclusive,
                },
            );
        }
        if let Some(bits) = schema.bits
            && self.found.len() == before
            && !self.is_part
            && !schema.is_within_bits(value)
        {
            self.push(at, ViolationKind::Bits { value, bits });
        }
    }

    /// Checks the pattern only if the length is right.
    fn text(&mut self, schema: &'a Schema, text: &str, value: &'a Value, at: At<'_, 'a>) {
        let before = self.found.len();
        let length = text.chars().count();
        self.too_many(schema.max_length, length, Unit::Characters, at);
        self.too_few(schema.min_length, length, Unit::Characters, value, at);
        if let Some(pattern) = &schema.pattern
            && self.found.len() == before
            && !pattern.is_match(text)
        {
            let pattern = pattern.as_str();
            self.push(at, ViolationKind::Pattern { value, pattern });
        }
    }

    fn items(&mut self, schema: &'a Schema, items: &'a [Value], value: &'a Value, at: At<'_, 'a>) {
        self.too_many(schema.max_items, items.len(), Unit::Items, at);
        self.too_few(schema.min_items, items.len(), Unit::Items, value, at);
        let Some(of_item) = schema.items() else { return };
        for (index, item) in items.iter().enumerate() {
            self.value(of_item, item, at.item(index));
        }
        if schema.map_keys.is_empty() && !schema.is_set {
            return;
        }
        let mut seen: Vec<Vec<&Value>> = Vec::new();
        for (index, value) in items.iter().enumerate() {
            let key: Vec<&Value> = if schema.is_set {
                vec![value]
            } else {
                schema.map_keys.iter().filter_map(|key| value.get(key)).collect()
            };
            if seen.contains(&key) {
                self.push(at.item(index), ViolationKind::Duplicate { value });
            }
            seen.push(key);
        }
    }

    fn too_many(&mut self, limit: Option<u64>, found: usize, unit: Unit, at: At<'_, 'a>) {
        if let Some(limit) = limit.filter(|limit| found as u64 > *limit) {
            self.push(at, ViolationKind::TooMany { unit, found, limit });
        }
    }

    fn too_few(&mut self, limit: Option<u64>, found: usize, unit: Unit, value: &'a Value, at: At<'_, 'a>) {
        if let Some(limit) = limit.filter(|limit| (found as u64) < *limit) {
            self.push(
                at,
                ViolationKind::TooFew {
                    value,
                    unit,
                    found,
                    limit,
                },
            );
        }
    }

    fn combined(&mut self, schema: &'a Schema, value: &'a Value, at: At<'_, 'a>) {
        if !schema.is_combined() {
            return;
        }
        let was_part = std::mem::replace(&mut self.is_part, true);
        for schema in &schema.all_of {
            self.value(schema, value, at);
        }
        self.is_part = was_part;
        let fits = |schema: &Schema| {
            let mut check = Check {
                found: Vec::new(),
                is_part: true,
            };
            check.value(schema, value, At::Here);
            check.found.is_empty()
        };
        if !schema.any_of.is_empty() && !schema.any_of.iter().any(fits) {
            self.push(at, ViolationKind::Combined(Combination::AnyOf));
        }
        if !schema.one_of.is_empty() && schema.one_of.iter().filter(|schema| fits(schema)).count() != 1 {
            self.push(at, ViolationKind::Combined(Combination::OneOf));
        }
        if schema.not.as_deref().is_some_and(fits) {
            self.push(at, ViolationKind::Combined(Combination::Not));
        }
    }
}

#[cfg(test)]
mod tests;
