//! Compares a job with the same job after a webhook in Go.

use serde_json::{Value, json};

/// Returns true for the zero values that Go's types write: containers without resources, null dates, and an empty run
/// policy with the API server's only default.
fn is_of_nothing(key: &str, value: &Value) -> bool {
    match key {
        "creationTimestamp" => value.is_null(),
        "metadata" | "resources" => *value == json!({}) || *value == json!({"creationTimestamp": null}),
        "runPolicy" => *value == json!({"suspend": false}),
        _ => false,
    }
}

/// Collects the differences of `there` from `here`, except for zero values.
pub fn differences(at: &str, here: &Value, there: &Value, found: &mut Vec<String>) {
    match (here, there) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                let (x, y) = (a.get(key), b.get(key).unwrap_or(&Value::Null));
                if x.is_some() || !is_of_nothing(key, y) {
                    differences(&format!("{at}.{key}"), x.unwrap_or(&Value::Null), y, found);
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (n, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{at}[{n}]"), a, b, found);
            }
        }
        // An integral quantity may be a number.
        (Value::Number(a), Value::String(b)) if a.to_string() == *b => {}
        (a, b) if a == b => {}
        (a, b) => found.push(format!("{at}: {a} became {b}")),
    }
}
