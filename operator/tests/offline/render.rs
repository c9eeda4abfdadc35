//! `training-operator render`. What it prints is in `cases/render.t`.

use serde_json::Value;
use training_operator_testing::program::run;

#[test]
fn both_formats_have_the_same_objects() {
    let yaml = run(&["render", "operator/tests/cases"]);
    let options = serde_saphyr::options! { legacy_octal_numbers: true };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(&yaml.stdout, options).unwrap();
    let json = run(&["render", "operator/tests/cases", "--output", "json"]);
    let list: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(list["kind"], "List");
    assert_eq!(list["items"], Value::Array(documents));
}
