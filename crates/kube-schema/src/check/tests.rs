use serde_json::json;

use super::*;
use crate::Type;

/// Returns the violations in a value under a property of this schema, each with its path and kind in short form.
fn violations(schema: Value, value: Value) -> Vec<String> {
    let schema = Schema::new(&json!({"type": "object", "properties": {"at": schema}}));
    let object = json!({ "at": value });
    let found = schema.check(&object);
    let members: Vec<_> = object.as_object().unwrap().iter().collect();
    let members: Vec<_> = members
        .iter()
        .map(|(key, value)| (key.as_str(), *value))
        .collect();
    assert_eq!(found, schema.check_members(&members));
    let short = |violation: &Violation<'_>| {
        let kind = match &violation.kind {
            ViolationKind::Missing => "missing".to_owned(),
            ViolationKind::Unknown { known } => format!("unknown, known {}", known.join(" ")),
            ViolationKind::Null { wanted } => format!("null for {wanted:?}"),
            ViolationKind::Type { value, wanted, .. } => format!("{value} for {wanted:?}"),
            ViolationKind::Unsupported { value, allowed } => format!("{value} not in {}", json!(allowed)),
            ViolationKind::TooSmall {
                value,
                bound,
                exclusive: false,
            } => format!("{value} < {bound}"),
            ViolationKind::TooSmall {
                value,
                bound,
                exclusive: true,
            } => format!("{value} <= {bound}"),
            ViolationKind::TooBig {
                value,
                bound,
                exclusive: false,
            } => format!("{value} > {bound}"),
            ViolationKind::TooBig {
                value,
                bound,
                exclusive: true,
            } => format!("{value} >= {bound}"),
            ViolationKind::Bits { value, bits } => format!("{value} has more than {bits} bits"),
            ViolationKind::TooFew {
                unit, found, limit, ..
            } => format!("{found} < {limit} {unit:?}"),
            ViolationKind::TooMany { unit, found, limit } => format!("{found} > {limit} {unit:?}"),
            ViolationKind::Pattern { value, pattern } => format!("{value} is not {pattern}"),
            ViolationKind::Duplicate { value } => format!("{value} again"),
            ViolationKind::Combined(combination) => format!("{combination:?}"),
        };
        let path = violation.path.to_string();
        format!("{}: {kind}", path.strip_prefix("at").unwrap())
    };
    found.iter().map(short).collect()
}

#[test]
fn each_keyword_has_its_violation() {
    let texts = json!({"items": {"type": "string"}, "type": "array"});
    let set =
        json!({"type": "array", "x-kubernetes-list-type": "set", "minItems": 1, "maxItems": 2, "items": {}});
    let part = json!({"type": "object", "properties": {"k": {"type": "string"}, "n": {"type": "integer"}}});
    let keyed = json!({"type": "array", "items": part, "x-kubernetes-list-map-keys": ["k"]});
    let text = json!({"type": "string", "minLength": 2, "maxLength": 3, "pattern": "^[a-z]*$"});
    let within = json!({"minimum": 1, "maximum": 2});
    let between = json!({"minimum": 1, "maximum": 2, "exclusiveMinimum": true, "exclusiveMaximum": true});
    let small = json!({"type": "integer", "format": "int32", "maximum": 1e10});
    let map = json!({"additionalProperties": {"type": "boolean"}, "minProperties": 1, "maxProperties": 2});
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
            violations(schema.clone(), value.clone()),
            expected,
            "{value} under {schema}"
        );
    }
}

#[test]
fn combined_schemas_narrow_the_schema_that_contains_them() {
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
            violations(schema.clone(), value.clone()),
            expected,
            "{value} under {schema}"
        );
    }
}

#[test]
fn only_an_object_has_type_and_metadata() {
    let schema = Schema::new(&json!({
        "type": "object", "required": ["kind", "metadata", "spec"], "anyOf": [{"required": ["spec"]}],
        "properties": {"metadata": {"type": "string"}, "spec": {}},
    }));
    let object = json!({"apiVersion": "v1", "metadata": {"name": "a"}});
    let paths = |violations: Vec<Violation<'_>>| -> Vec<String> {
        violations.iter().map(|b| b.path.to_string()).collect()
    };
    assert_eq!(paths(schema.check(&object)), ["spec", ""]);
    assert_eq!(
        paths(schema.check_members(&[])),
        ["spec"],
        "combined schemas are not checked"
    );
    assert_eq!(paths(schema.check_members(&[("spec", &json!({}))])), [""; 0]);
    assert!(schema.is_combined());
    assert_eq!(
        paths(schema.check_value(&object)),
        ["kind", "spec", "apiVersion", "metadata", ""]
    );
    let text = json!("text");
    let wanted = Type::Object;
    assert_eq!(
        schema.check(&text)[0].kind,
        ViolationKind::Type {
            value: &text,
            wanted,
            bits: None
        }
    );
}

#[test]
fn a_list_is_merged_by_its_keys_or_as_a_set() {
    let list = |extensions: Value| Schema::new(&extensions);
    let keyed =
        list(json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "port"]}));
    assert_eq!(keyed.map_keys(), ["name", "port"]);
    assert!(!keyed.is_set() && !keyed.is_combined());
    let set = list(json!({"x-kubernetes-list-type": "set"}));
    assert!(set.is_set() && set.map_keys().is_empty());
    for key in ["allOf", "anyOf", "oneOf"] {
        assert!(list(json!({ key: [{}] })).is_combined(), "{key}");
    }
    assert!(list(json!({"not": {}})).is_combined());
}
