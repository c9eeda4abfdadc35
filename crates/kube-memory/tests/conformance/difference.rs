//! Comparison of two responses.

use serde_json::Value;
use similar::TextDiff;

use crate::script::Named;

/// Returns the problems with a pair of masked responses; none if they are equal except for the named differences.
pub(crate) fn between(mut real: Value, mut memory: Value, named: &[Named]) -> Vec<String> {
    let mut problems = Vec::new();
    for difference in named {
        let Named { at, why, .. } = difference;
        if difference.real == difference.memory {
            problems.push(format!("{at}: no difference is named ({why})"));
        }
        for (side, response, pinned) in [
            ("real", &real, &difference.real),
            ("memory", &memory, &difference.memory),
        ] {
            if response.pointer(at) != pinned.as_ref() {
                let found = response.pointer(at);
                problems.push(format!(
                    "{at}, {side}: {found:?} is not what was named, {pinned:?} ({why})"
                ));
            }
        }
        for response in [&mut real, &mut memory] {
            remove(response, at);
        }
    }
    if real != memory {
        let (real, memory) = (written(&real), written(&memory));
        let diff = TextDiff::from_lines(&real, &memory);
        problems.push(
            diff.unified_diff()
                .context_radius(3)
                .header("real", "memory")
                .to_string(),
        );
    }
    problems
}

fn written(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("JSON can be written") + "\n"
}

fn remove(value: &mut Value, at: &str) {
    let Some((parent, key)) = at.rsplit_once('/') else {
        return;
    };
    match value.pointer_mut(parent) {
        Some(Value::Object(members)) => {
            members.remove(&key.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(items)) => {
            if let Some(item) = key.parse().ok().and_then(|index: usize| items.get_mut(index)) {
                *item = Value::Null;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn named(real: Option<Value>, memory: Option<Value>) -> [Named; 1] {
        [Named {
            at: "/body/a".to_owned(),
            why: "w".to_owned(),
            real,
            memory,
        }]
    }

    #[test]
    fn a_named_difference_may_not_change() {
        let (real, memory) = (json!({"body": {"a": 1}}), json!({"body": {}}));
        assert_eq!(between(real.clone(), real.clone(), &[]).len(), 0);
        assert_eq!(between(real.clone(), memory.clone(), &[]).len(), 1);
        let known = named(Some(json!(1)), None);
        assert_eq!(between(real.clone(), memory.clone(), &known).len(), 0);
        // The difference is gone, and then it has changed.
        assert_eq!(between(real.clone(), real.clone(), &known).len(), 1);
        assert_eq!(
            between(json!({"body": {"a": 2}}), memory.clone(), &known).len(),
            1
        );
        assert_eq!(
            between(real.clone(), real, &named(Some(json!(1)), Some(json!(1)))).len(),
            1
        );
    }
}
