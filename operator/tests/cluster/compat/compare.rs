//! The differences between two values, by paths such as `pods.job-worker-0.spec.containers[0].env`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// Marks a missing value.
pub(crate) const ABSENT: &str = "<absent>";

/// Paths with their values.
pub(crate) type Places = BTreeMap<String, Value>;

/// Returns the paths at which `here` differs from `there`, with the values of `here`.
pub(crate) fn differences(there: &Value, here: &Value) -> Places {
    let mut places = Places::new();
    collect(there, here, String::new(), &mut places);
    places
}

fn collect(there: &Value, here: &Value, path: String, places: &mut Places) {
    match (there, here) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<_> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => collect(a, b, path, places),
                    (_, b) => {
                        places.insert(path, b.cloned().unwrap_or_else(|| ABSENT.into()));
                    }
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (n, (a, b)) in a.iter().zip(b).enumerate() {
                collect(a, b, format!("{path}[{n}]"), places);
            }
        }
        _ if there == here => {}
        _ => {
            places.insert(path, here.clone());
        }
    }
}

/// Returns the value at a path.
pub(crate) fn get<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    if path.is_empty() {
        return Some(value);
    }
    match value {
        Value::Array(items) => {
            let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
            get(items.get(index.parse::<usize>().ok()?)?, trim(rest))
        }
        Value::Object(map) => {
            let (key, rest) = step(map, path)?;
            get(&map[&key], trim(&rest))
        }
        _ => None,
    }
}

/// Sets the value at a path that [`differences`] returned.
pub(crate) fn put(value: &mut Value, path: &str, new: &Value) {
    match value {
        _ if path.is_empty() => *value = new.clone(),
        Value::Array(items) => {
            let (index, rest) = path.strip_prefix('[').unwrap().split_once(']').unwrap();
            put(&mut items[index.parse::<usize>().unwrap()], trim(rest), new);
        }
        Value::Object(map) => match step(map, path) {
            Some((key, rest)) if rest.is_empty() && new == ABSENT => {
                map.remove(&key);
            }
            Some((key, rest)) => put(map.get_mut(&key).unwrap(), trim(&rest), new),
            None => {
                map.insert(path.to_owned(), new.clone());
            }
        },
        _ => panic!("{path}: there is no such place"),
    }
}

fn trim(rest: &str) -> &str {
    rest.strip_prefix('.').unwrap_or(rest)
}

/// Splits a path into its first key and the rest. Keys may contain dots.
fn step(map: &Map<String, Value>, path: &str) -> Option<(String, String)> {
    let begins = |key: &&String| {
        let rest = path.strip_prefix(key.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let key = map.keys().filter(begins).max_by_key(|key| key.len())?;
    Some((key.clone(), path[key.len()..].to_owned()))
}

/// Returns true if a pattern matches a path or a parent of it; `*` matches anything.
pub(crate) fn covers(pattern: &str, path: &str) -> bool {
    let ends = |rest: &[u8]| rest.first().is_none_or(|c| b".[ :".contains(c));
    glob(pattern.as_bytes(), path.as_bytes(), &ends)
}

/// Returns true if a pattern matches a whole name.
pub(crate) fn names(pattern: &str, name: &str) -> bool {
    glob(pattern.as_bytes(), name.as_bytes(), &<[u8]>::is_empty)
}

fn glob(pattern: &[u8], text: &[u8], ends: &impl Fn(&[u8]) -> bool) -> bool {
    match pattern.split_first() {
        None => ends(text),
        Some((b'*', rest)) => (0..=text.len()).any(|n| glob(rest, &text[n..], ends)),
        Some((c, rest)) => text.first() == Some(c) && glob(rest, &text[1..], ends),
    }
}

#[test]
fn a_difference_leads_from_there_to_here() {
    use serde_json::json;
    let there = json!({"a": {"x.y/z": 1, "l": [1, {"k": 2}]}, "gone": 1});
    let here = json!({"a": {"x.y/z": 2, "l": [1, {"k": 3}], "new": {"b": 1}}});
    let places = differences(&there, &here);
    let paths: Vec<_> = places.keys().map(String::as_str).collect();
    assert_eq!(paths, ["a.l[1].k", "a.new", "a.x.y/z", "gone"]);
    let mut value = there.clone();
    for (path, new) in &places {
        put(&mut value, path, new);
        let expected = (new != ABSENT).then_some(new);
        assert_eq!(get(&value, path), expected);
    }
    assert_eq!(value, here);
    assert!(covers("a.*.k", "a.l[1].k") && covers("a.l", "a.l[1].k") && !covers("a.l", "a.long"));
    assert!(names("mx-*", "mx-a") && !names("mx", "mx-a"));
}
