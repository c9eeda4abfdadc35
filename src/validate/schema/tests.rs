use super::*;
use serde_json::json;

fn schema() -> Schema {
    Schema::new(&json!({
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
                "word": {"type": "string", "pattern": "^[a-z]+$"},
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "share": {"type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 1, "exclusiveMaximum": true},
                "either": {
                    "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                    "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
                    "oneOf": [{"required": ["a"]}, {"properties": {"b": {"maximum": 1}}}],
                    "not": {"required": ["a", "b"]},
                },
            },
        }},
    }))
}

fn errors(spec: Value) -> Vec<String> {
    let object = json!({"apiVersion": "v", "kind": "K", "metadata": {"name": "x"}, "spec": spec});
    check(&schema(), &object, &mut FieldErrors::default())
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn objects_that_the_schema_allows_have_no_errors() {
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
fn a_null_in_a_map_is_a_warning_that_names_the_lost_key() {
    let object = json!({"spec": {"mode": "", "labels": {"a": null}}});
    let mut nulls = FieldErrors::default();
    assert!(check(&schema(), &object, &mut nulls).is_empty());
    assert_eq!(
        nulls.to_string(),
        "spec.labels.a: null is dropped by the API server, so labels has no a; set a value or remove it"
    );
}

/// Specs with their errors.
const FORBIDDEN: &str = r#"
{} | spec.mode: must be set
{"mode": null} | spec.mode: must be set
{"mode": "train"} | spec.mode: unknown value "train"; did you mean Train? use one of Train, Tune
{"mode": true} | spec.mode: must be a string (is true); put it in quotes
{"mode": "", "count": "1"} | spec.count: must be an integer (is "1"); remove the quotes
{"mode": "", "count": 1.5} | spec.count: must be an integer (is 1.5)
{"mode": "", "count": -1} | spec.count: must be at least 0 (is -1)
{"mode": "", "count": 11} | spec.count: must be at most 10 (is 11)
{"mode": "", "small": 3000000000} | spec.small: must fit in 32 bits (is 3000000000)
{"mode": "", "port": []} | spec.port: must be an integer or a string (is a list)
{"mode": "", "port": 1.5} | spec.port: must be an integer or a string (is 1.5); put it in quotes
{"mode": "", "name": "long"} | spec.name: must be at most 3 characters (has 4)
{"mode": "", "big": 9223372036854775808} | spec.big: must fit in 64 bits (is 9223372036854775808)
{"mode": "", "ratio": 0.25} | spec.ratio: must be at least 0.5 (is 0.25)
{"mode": "", "ratio": "half"} | spec.ratio: must be a number (is "half")
{"mode": "", "free": 5} | spec.free: must be an object (is 5)
{"mode": "", "list": {}} | spec.list: must be a list (is an object)
{"mode": "", "list": [5]} | spec.list[0]: must be true or false (is 5)
{"mode": "", "name": ""} | spec.name: must be at least 1 character (has 0)
{"mode": "", "list": [true, true, true]} | spec.list: must have at most 2 items (has 3)
{"mode": "", "labels": {"a/b": 5}} | spec.labels[a/b]: must be a string (is 5); put it in quotes
{"mode": "", "list": []} | spec.list: must have at least 1 item (has 0)
{"mode": "", "list": [true, null]} | spec.list[1]: must not be null; set a value or remove it
{"mode": "", "word": "Word"} | spec.word: must match ^[a-z]+$ (is "Word")
{"mode": "", "set": ["a", "b", "a"]} | spec.set[2]: must not be a duplicate; remove one of them
{"mode": "", "share": 0} | spec.share: must be more than 0 (is 0)
{"mode": "", "share": 1} | spec.share: must be less than 1 (is 1)
{"mode": "", "either": {}} | spec.either: must match at least one schema in anyOf
{"mode": "", "either": {"a": 1}} | spec.either: must match exactly one schema in oneOf
{"mode": "", "either": {"a": 1, "b": 2}} | spec.either: must not match the schema in not
{"mode": "", "cuont": 1} | spec.cuont: unknown field; did you mean count?
"#;

#[test]
fn objects_that_the_schema_forbids_have_errors_with_paths() {
    for row in FORBIDDEN.lines().skip(1) {
        let (spec, error) = row.split_once(" | ").unwrap();
        assert_eq!(errors(serde_json::from_str(spec).unwrap()), [error], "{spec}");
    }
}

#[test]
fn a_whole_object_within_another_has_a_kind_and_others_have_not() {
    let errors = |embedded: bool| {
        let schema = Schema::new(&json!({"type": "object", "properties": {
            "part": {"type": "object", "x-kubernetes-embedded-resource": embedded},
        }}));
        check(
            &schema,
            &json!({"part": {"kind": "Pod"}}),
            &mut FieldErrors::default(),
        )
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
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        assert_eq!(unknown_remedy("x", &names), remedy);
    }
    let twelve: Vec<String> = (0..MAX_NAMED_FIELDS).map(|n| format!("field-{n:02}")).collect();
    let twelve: Vec<_> = twelve.iter().map(String::as_str).collect();
    let remedy = unknown_remedy("x", &twelve);
    assert!(remedy.ends_with("field-11, or remove it"), "{remedy}");
}

#[test]
fn a_value_of_unknown_type_and_one_without_a_type_pass() {
    let found = |schema: Value, object: Value| {
        let mut nulls = FieldErrors::default();
        let errors = check(&Schema::new(&schema), &object, &mut nulls);
        errors.iter().chain(nulls.iter()).count()
    };
    let odd = json!({"type": "object", "additionalProperties": {"type": "odd"}});
    assert_eq!(found(odd, json!({"a": 1, "b": null})), 1);
    let open = json!({"type": "object", "additionalProperties": true});
    assert_eq!(found(open, json!({"a": 1})), 0);
    assert_eq!(found(json!({"type": "object"}), json!({"a": 1})), 1);
}

#[test]
fn metadata_is_checked_as_kubernetes_own() {
    let object = json!({"metadata": {"nmae": "x", "labels": {"a": 1}}, "spec": {"mode": ""}, "sepc": {}});
    let errors: Vec<_> = check(&schema(), &object, &mut FieldErrors::default())
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        errors,
        [
            "sepc: unknown field; did you mean spec?",
            "metadata.labels.a: must be a string (is 1); put it in quotes",
            "metadata.nmae: unknown field; did you mean name?",
        ]
    );
}
