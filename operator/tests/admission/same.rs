//! Whether a job is still the same behind a webhook that is written in Go.

use serde_json::{Value, json};

/// What Go's types write of nothing: containers without resources, and dates that are null.
fn is_of_nothing(key: &str, value: &Value) -> bool {
    let keys = [
        "creationTimestamp",
        "metadata",
        "resources",
        "runPolicy",
        "strategy",
    ];
    keys.contains(&key) && (value.is_null() || *value == json!({}))
}

/// Where `there` differs from `here` in more than what is of nothing.
pub(crate) fn differences(at: &str, here: &Value, there: &Value, found: &mut Vec<String>) {
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
        // A quantity of a whole number may be a number.
        (Value::Number(a), Value::String(b)) if a.to_string() == *b => {}
        (a, b) if a == b => {}
        (a, b) => found.push(format!("{at}: {a} became {b}")),
    }
}
