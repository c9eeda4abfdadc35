//! Mutations of JSON values.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::random::Random;

/// The words of libFuzzer's dictionary.
static WORDS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let lines = include_str!("../words.dict").lines();
    lines
        .filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'))
        .filter(|word| !word.contains('\\'))
        .collect()
});

/// Makes one to four changes somewhere in `values`.
pub(crate) fn change(values: &mut Vec<Value>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let mut places = Vec::new();
        for (n, value) in values.iter().enumerate() {
            collect(value, &format!("/{n}"), &mut places);
        }
        let mut all = Value::Array(std::mem::take(values));
        let one = places
            .get(random.below(places.len()))
            .cloned()
            .unwrap_or_default();
        let other = places
            .get(random.below(places.len()))
            .cloned()
            .unwrap_or_default();
        let copy = all.pointer(&other).cloned().unwrap_or_default();
        match random.below(6) {
            0 => remove(&mut all, &one),
            // A copy of another value.
            1 => set(&mut all, &one, copy),
            2 => add(&mut all, &one, copy, random),
            3 => {
                let value = leaf(random);
                add(&mut all, &one, value, random);
            }
            4 => near(&mut all, &one, random),
            _ => set(&mut all, &one, leaf(random)),
        }
        if let Value::Array(changed) = all {
            *values = changed;
        }
    }
}

fn collect(value: &Value, at: &str, places: &mut Vec<String>) {
    places.push(at.to_owned());
    match value {
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                collect(item, &format!("{at}/{n}"), places);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                let key = key.replace('~', "~0").replace('/', "~1");
                collect(member, &format!("{at}/{key}"), places);
            }
        }
        _ => {}
    }
}

fn word(random: &mut Random) -> String {
    WORDS[random.below(WORDS.len())].to_owned()
}

fn leaf(random: &mut Random) -> Value {
    const NUMBERS: [i64; 12] = [
        0,
        -1,
        1,
        2,
        3,
        137,
        255,
        i32::MAX as i64,
        i32::MIN as i64,
        i64::MAX,
        i64::MIN,
        253_402_300_799,
    ];
    match random.below(8) {
        0 => Value::Null,
        1 => json!({}),
        2 => json!([]),
        3 => (random.below(2) == 0).into(),
        4 => NUMBERS[random.below(NUMBERS.len())].into(),
        5 => Value::from(random.below(100) as f64 / 8.0),
        _ => word(random).into(),
    }
}

fn set(all: &mut Value, at: &str, value: Value) {
    if let Some(place) = all.pointer_mut(at) {
        *place = value;
    }
}

/// Slightly changes a number or string, or reverses an array.
fn near(all: &mut Value, at: &str, random: &mut Random) {
    match all.pointer_mut(at) {
        Some(Value::Number(number)) => {
            let by = random.below(5) as i64 - 2;
            *number = number.as_i64().unwrap_or(0).saturating_add(by).into();
        }
        Some(Value::String(text)) => match random.below(3) {
            0 => text.push_str(&word(random)),
            1 => drop(text.pop()),
            _ => *text = text.to_lowercase(),
        },
        Some(Value::Array(items)) => items.reverse(),
        _ => {}
    }
}

fn add(all: &mut Value, at: &str, value: Value, random: &mut Random) {
    match all.pointer_mut(at) {
        Some(Value::Array(items)) => items.insert(random.below(items.len() + 1), value),
        Some(Value::Object(members)) => drop(members.insert(word(random), value)),
        Some(place) => *place = Value::Object(Map::from_iter([(word(random), value)])),
        None => {}
    }
}

fn remove(all: &mut Value, at: &str) {
    let Some((parent, key)) = at.rsplit_once('/') else {
        return;
    };
    match all.pointer_mut(parent) {
        Some(Value::Array(items)) => {
            if let Ok(n) = key.parse::<usize>()
                && n < items.len()
            {
                items.remove(n);
            }
        }
        Some(Value::Object(members)) => {
            members.remove(&key.replace("~1", "/").replace("~0", "~"));
        }
        _ => {}
    }
}
