//! What is wrong with an object: breaches in the order in which an API server tells them.

use serde_json::{Map, Value};

use crate::{
    breach::{Breach, Combination, Unit, Wrong},
    is_type_or_metadata,
    path::At,
    schema::Schema,
};

impl Schema {
    /// What is wrong with a Kubernetes object. Its `apiVersion`, `kind` and `metadata` are not looked at.
    pub fn check<'a>(&'a self, object: &'a Value) -> Vec<Breach<'a>> {
        let mut check = Check::default();
        match object {
            Value::Object(members) => {
                check.object(self, members, object, Around::Object, At::Here);
                check.combined(self, object, At::Here);
            }
            other => check.value(self, other, At::Here),
        }
        check.found
    }

    /// The same of an object that is not kept as one value, from all of its members or all but the metadata. The schemas
    /// that the object as a whole must fit are left out: whether there are any says [`Schema::is_combined`].
    pub fn check_members<'a>(&'a self, members: &[(&'a str, &'a Value)]) -> Vec<Breach<'a>> {
        let mut check = Check::default();
        let get = |name: &str| {
            members
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| *value)
        };
        check.required(self, get, Around::Object, At::Here);
        check.members(self, members.iter().copied(), Around::Object, At::Here);
        check.found
    }

    /// What is wrong with a value that is no Kubernetes object, such as metadata.
    pub fn check_value<'a>(&'a self, value: &'a Value) -> Vec<Breach<'a>> {
        let mut check = Check::default();
        check.value(self, value, At::Here);
        check.found
    }
}

/// What members are members of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    /// The Kubernetes object that is checked.
    Object,
    /// A Kubernetes object within it.
    Embedded,
    /// Something else.
    Value,
}

#[derive(Default)]
struct Check<'a> {
    found: Vec<Breach<'a>>,
    /// The schema is one of those that are combined. Such a schema only narrows what another says of the same value: what
    /// fields there are, which may be null, and what bits they have is not its concern.
    is_part: bool,
}

impl<'a> Check<'a> {
    fn push(&mut self, at: At<'_, 'a>, wrong: Wrong<'a>) {
        let path = at.path();
        self.found.push(Breach { path, wrong });
    }

    fn value(&mut self, schema: &'a Schema, value: &'a Value, at: At<'_, 'a>) {
        if value.is_null() && schema.nullable {
            return;
        }
        if value.is_null() && !self.is_part {
            self.push(at, Wrong::Null { wanted: schema.type_ });
            if schema.type_.is_some() {
                return;
            }
        }
        if let Some(wanted) = schema.type_
            && !schema.is_of_type(value)
        {
            return self.push(at, Wrong::Type { value, wanted });
        }
        if let Some(allowed) = &schema.allowed
            && !allowed.contains(value)
        {
            self.push(at, Wrong::Word { value, allowed });
        }
        match value {
            Value::Number(_) => self.number(schema, value, at),
            Value::String(text) => self.text(schema, text, value, at),
            Value::Array(items) => self.items(schema, items, value, at),
            Value::Object(members) => {
                let around = if schema.embedded {
                    Around::Embedded
                } else {
                    Around::Value
                };
                self.object(schema, members, value, around, at);
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
        around: Around,
        at: At<'_, 'a>,
    ) {
        self.required(schema, |name| members.get(name), around, at);
        let (min, max) = (schema.min_properties, schema.max_properties);
        self.too_many(max, members.len(), Unit::Entries, at);
        self.too_few(min, members.len(), Unit::Entries, value, at);
        let members = members.iter().map(|(key, value)| (key.as_str(), value));
        self.members(schema, members, around, at);
    }

    fn required(
        &mut self,
        schema: &'a Schema,
        get: impl Fn(&str) -> Option<&'a Value>,
        around: Around,
        at: At<'_, 'a>,
    ) {
        for name in &schema.required {
            if around == Around::Object && is_type_or_metadata(name) {
                continue;
            }
            let absent = match get(name) {
                None => true,
                Some(value) => value.is_null() && self.is_dropped(schema, name),
            };
            if absent {
                self.push(at.member(name), Wrong::Missing);
            }
        }
    }

    /// Whether a null there is as good as absent.
    fn is_dropped(&self, schema: &Schema, name: &str) -> bool {
        !self.is_part && schema.property(name).is_some_and(|property| !property.nullable)
    }

    fn members(
        &mut self,
        schema: &'a Schema,
        members: impl Iterator<Item = (&'a str, &'a Value)>,
        around: Around,
        at: At<'_, 'a>,
    ) {
        for (key, value) in members {
            let has_kind = around != Around::Value && is_type_or_metadata(key);
            if has_kind && around == Around::Object {
                continue;
            }
            match schema.member(key) {
                Some(_) if value.is_null() && self.is_dropped(schema, key) => {}
                Some(member) => self.value(member, value, at.member(key)),
                None if has_kind || self.is_part || schema.is_open() => {}
                None => {
                    let known = schema.properties.keys().map(String::as_str).collect();
                    self.push(at.member(key), Wrong::Unknown { known });
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
                Wrong::TooSmall {
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
                Wrong::TooBig {
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
            self.push(at, Wrong::Bits { value, bits });
        }
    }

    /// Only the first breach is told.
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
            self.push(at, Wrong::Pattern { value, pattern });
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
                self.push(at.item(index), Wrong::Duplicate { value });
            }
            seen.push(key);
        }
    }

    fn too_many(&mut self, limit: Option<u64>, found: usize, unit: Unit, at: At<'_, 'a>) {
        if let Some(limit) = limit.filter(|limit| found as u64 > *limit) {
            self.push(at, Wrong::TooMany { unit, found, limit });
        }
    }

    fn too_few(&mut self, limit: Option<u64>, found: usize, unit: Unit, value: &'a Value, at: At<'_, 'a>) {
        if let Some(limit) = limit.filter(|limit| (found as u64) < *limit) {
            self.push(
                at,
                Wrong::TooFew {
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
            self.push(at, Wrong::Combined(Combination::AnyOf));
        }
        if !schema.one_of.is_empty() && schema.one_of.iter().filter(|schema| fits(schema)).count() != 1 {
            self.push(at, Wrong::Combined(Combination::OneOf));
        }
        if schema.not.as_deref().is_some_and(fits) {
            self.push(at, Wrong::Combined(Combination::Not));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Type;

    /// What is wrong with a value under a property of this schema: the path within it and the breach, in short.
    fn wrong(schema: Value, value: Value) -> Vec<String> {
        let schema = Schema::new(&json!({"type": "object", "properties": {"at": schema}}));
        let object = json!({ "at": value });
        let breaches = schema.check(&object);
        let members: Vec<_> = object.as_object().unwrap().iter().collect();
        let members: Vec<_> = members
            .iter()
            .map(|(key, value)| (key.as_str(), *value))
            .collect();
        assert_eq!(breaches, schema.check_members(&members));
        let short = |breach: &Breach<'_>| {
            let wrong = match &breach.wrong {
                Wrong::Missing => "missing".to_owned(),
                Wrong::Unknown { known } => format!("unknown, known {}", known.join(" ")),
                Wrong::Null { wanted } => format!("null for {wanted:?}"),
                Wrong::Type { value, wanted } => format!("{value} for {wanted:?}"),
                Wrong::Word { value, allowed } => format!("{value} not in {}", json!(allowed)),
                Wrong::TooSmall {
                    value,
                    bound,
                    exclusive: false,
                } => format!("{value} < {bound}"),
                Wrong::TooSmall {
                    value,
                    bound,
                    exclusive: true,
                } => format!("{value} <= {bound}"),
                Wrong::TooBig {
                    value,
                    bound,
                    exclusive: false,
                } => format!("{value} > {bound}"),
                Wrong::TooBig {
                    value,
                    bound,
                    exclusive: true,
                } => format!("{value} >= {bound}"),
                Wrong::Bits { value, bits } => format!("{value} has more than {bits} bits"),
                Wrong::TooFew {
                    unit, found, limit, ..
                } => format!("{found} < {limit} {unit:?}"),
                Wrong::TooMany { unit, found, limit } => format!("{found} > {limit} {unit:?}"),
                Wrong::Pattern { value, pattern } => format!("{value} is not {pattern}"),
                Wrong::Duplicate { value } => format!("{value} again"),
                Wrong::Combined(combination) => format!("{combination:?}"),
            };
            let path = breach.path.to_string();
            format!("{}: {wrong}", path.strip_prefix("at").unwrap())
        };
        breaches.iter().map(short).collect()
    }

    #[test]
    fn each_keyword_has_its_breach() {
        let texts = json!({"items": {"type": "string"}, "type": "array"});
        let set = json!({"type": "array", "x-kubernetes-list-type": "set", "minItems": 1, "maxItems": 2, "items": {}});
        let part =
            json!({"type": "object", "properties": {"k": {"type": "string"}, "n": {"type": "integer"}}});
        let keyed = json!({"type": "array", "items": part, "x-kubernetes-list-map-keys": ["k"]});
        let text = json!({"type": "string", "minLength": 2, "maxLength": 3, "pattern": "^[a-z]*$"});
        let within = json!({"minimum": 1, "maximum": 2});
        let between = json!({"minimum": 1, "maximum": 2, "exclusiveMinimum": true, "exclusiveMaximum": true});
        let small = json!({"type": "integer", "format": "int32", "maximum": 1e10});
        let map =
            json!({"additionalProperties": {"type": "boolean"}, "minProperties": 1, "maxProperties": 2});
        let object = json!({"required": ["a", "b"], "properties": {"a": {"nullable": true}, "b": {}}});
        let pod = json!({"type": "object", "x-kubernetes-embedded-resource": true});
        let int_or_string = json!({"x-kubernetes-int-or-string": true, "pattern": "%$"});
        for (schema, value, expected) in [
            (
                &texts,
                json!(["a", 1, null]),
                vec!["[1]: 1 for String", "[2]: null for Some(String)"],
            ),
            (&texts, json!({}), vec![": {} for Array"]),
            (&set, json!([]), vec![": 0 < 1 Items"]),
            (&set, json!([1, "1", 1]), vec![": 3 > 2 Items", "[2]: 1 again"]),
            (&set, json!([null]), vec!["[0]: null for None"]),
            (
                &keyed,
                json!([{"k": "a"}, {"k": "a", "n": 1}, {"k": "b"}]),
                vec![r#"[1]: {"k":"a","n":1} again"#],
            ),
            (&keyed, json!([{"kk": 1}]), vec!["[0].kk: unknown, known k n"]),
            (&text, json!("ab"), vec![]),
            (&text, json!("A"), vec![": 1 < 2 Characters"]),
            (&text, json!("üüü"), vec![r#": "üüü" is not ^[a-z]*$"#]),
            (&text, json!("ABCD"), vec![": 4 > 3 Characters"]),
            (&within, json!(1), vec![]),
            (&within, json!(2), vec![]),
            (&within, json!(0.5), vec![": 0.5 < 1"]),
            (&within, json!(3), vec![": 3 > 2"]),
            (&between, json!(1), vec![": 1 <= 1"]),
            (&between, json!(2), vec![": 2 >= 2"]),
            (&between, json!(1.5), vec![]),
            (
                &small,
                json!(3_000_000_000_u64),
                vec![": 3000000000 has more than 32 bits"],
            ),
            (
                &small,
                json!(30_000_000_000_u64),
                vec![": 30000000000 > 10000000000"],
            ),
            (&small, json!(1.5), vec![": 1.5 for Integer"]),
            (&map, json!({}), vec![": 0 < 1 Entries"]),
            (
                &map,
                json!({"a/b": null, "b": 1, "c": true}),
                vec![
                    ": 3 > 2 Entries",
                    ".a/b: null for Some(Boolean)",
                    ".b: 1 for Boolean",
                ],
            ),
            (&object, json!({"a": null, "b": null}), vec![".b: missing"]),
            (&object, json!({}), vec![".a: missing", ".b: missing"]),
            (
                &pod,
                json!({"kind": "Pod", "spec": 1}),
                vec![".spec: unknown, known "],
            ),
            (
                &json!({"enum": ["a", 1]}),
                json!("b"),
                vec![r#": "b" not in ["a",1]"#],
            ),
            (&int_or_string, json!(1), vec![]),
            (&int_or_string, json!("1%"), vec![]),
            (&int_or_string, json!("1"), vec![r#": "1" is not %$"#]),
            (&int_or_string, json!(true), vec![": true for IntOrString"]),
            (&json!({"type": "odd", "pattern": "("}), json!("x"), vec![]),
        ] {
            assert_eq!(
                wrong(schema.clone(), value.clone()),
                expected,
                "{value} under {schema}"
            );
        }
    }

    #[test]
    fn combined_schemas_narrow_what_the_one_around_them_says() {
        let of = |key: &str, parts: Value| {
            json!({
                "type": "object",
                "properties": {"a": {"type": "integer", "nullable": true}, "b": {"type": "integer"}},
                key: parts,
            })
        };
        let has = |name: &str| json!({ "required": [name] });
        let either = json!([has("a"), has("b")]);
        let small = json!({"properties": {"a": {"maximum": 1}}});
        for (schema, value, expected) in [
            (of("anyOf", either.clone()), json!({}), vec![": AnyOf"]),
            (of("anyOf", either.clone()), json!({"a": 1, "b": 1}), vec![]),
            (of("oneOf", either.clone()), json!({"a": null}), vec![]),
            (of("oneOf", either), json!({"a": 1, "b": 1}), vec![": OneOf"]),
            (of("not", has("a")), json!({"a": 1}), vec![": Not"]),
            (of("not", has("a")), json!({"b": 1}), vec![]),
            (
                of("allOf", json!([small, has("b")])),
                json!({"a": 2}),
                vec![".a: 2 > 1", ".b: missing"],
            ),
            (
                of("allOf", json!([small])),
                json!({"c": 2}),
                vec![".c: unknown, known a b"],
            ),
        ] {
            assert_eq!(
                wrong(schema.clone(), value.clone()),
                expected,
                "{value} under {schema}"
            );
        }
    }

    #[test]
    fn an_object_has_type_and_metadata_and_other_values_have_not() {
        let schema = Schema::new(&json!({
            "type": "object", "required": ["kind", "metadata", "spec"], "anyOf": [{"required": ["spec"]}],
            "properties": {"metadata": {"type": "string"}, "spec": {}},
        }));
        let object = json!({"apiVersion": "v1", "metadata": {"name": "a"}});
        let told = |breaches: Vec<Breach<'_>>| -> Vec<String> {
            breaches.iter().map(|b| b.path.to_string()).collect()
        };
        assert_eq!(told(schema.check(&object)), ["spec", ""]);
        assert_eq!(
            told(schema.check_members(&[])),
            ["spec"],
            "what is combined is asked for by itself"
        );
        assert!(schema.is_combined());
        assert_eq!(
            told(schema.check_value(&object)),
            ["kind", "spec", "apiVersion", "metadata", ""]
        );
        let text = json!("text");
        let wanted = Type::Object;
        assert_eq!(schema.check(&text)[0].wrong, Wrong::Type { value: &text, wanted });
    }
}
