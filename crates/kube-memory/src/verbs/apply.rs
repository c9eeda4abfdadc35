//! Server-side apply: merges the fields that an applier sends, and removes the fields that it no longer sends.
//!
//! Only appliers own fields: the configuration that each applier sent last is stored. A write by any other verb owns
//! nothing. An apply therefore conflicts with other appliers only, and objects have no `managedFields`.

use serde_json::{Map, Value};

use crate::request::failure::{ApiResult, Failure};
use crate::store::object::Applied;
use crate::verbs::patch::{ListRule, Position, same_element};

/// Merges `config` of `manager` into `live`, and records it in `applied`.
///
/// # Errors
///
/// A conflict if another applier owns one of the fields with another value and `force` is not set.
pub(crate) fn apply(
    live: &mut Value,
    config: &Value,
    manager: &str,
    force: bool,
    applied: &mut Applied,
    position: Position<'_>,
) -> ApiResult<()> {
    let config = owned_part(config);
    let mut conflicts = Vec::new();
    for (other, theirs) in applied.iter_mut().filter(|(other, _)| *other != manager) {
        let mut paths = Vec::new();
        find_conflicts(&config, theirs, live, "", position, &mut paths);
        if force {
            remove_overridden(theirs, &config, live, position);
        } else {
            conflicts.extend(paths.into_iter().map(|path| (other.clone(), path)));
        }
    }
    if !conflicts.is_empty() {
        return Err(Failure::apply_conflict(&conflicts));
    }
    if let Some(last) = applied.get(manager) {
        let others: Vec<&Value> = applied
            .iter()
            .filter(|(other, _)| *other != manager)
            .map(|(_, theirs)| theirs)
            .collect();
        remove_no_longer_sent(live, last, &config, &others, position);
    }
    merge(live, &config, position);
    if config.as_object().is_some_and(Map::is_empty) {
        applied.remove(manager);
    } else {
        applied.insert(manager.to_owned(), config);
    }
    applied.retain(|_, theirs| !theirs.as_object().is_some_and(Map::is_empty));
    Ok(())
}

/// Returns the configuration without the fields that identify the object, because these have no owner.
fn owned_part(config: &Value) -> Value {
    let mut owned = config.clone();
    if let Some(map) = owned.as_object_mut() {
        map.remove("apiVersion");
        map.remove("kind");
        if let Some(meta) = map.get_mut("metadata").and_then(Value::as_object_mut) {
            for key in [
                "name",
                "namespace",
                "uid",
                "resourceVersion",
                "generation",
                "creationTimestamp",
            ] {
                meta.remove(key);
            }
            if meta.is_empty() {
                map.remove("metadata");
            }
        }
    }
    owned
}

/// Returns the element of `list` that is the same as `element` by the list's rule.
fn counterpart<'v>(list: Option<&'v Value>, rule: &ListRule<'_>, element: &Value) -> Option<&'v Value> {
    let items = list?.as_array()?;
    match rule {
        ListRule::Whole => None,
        ListRule::Set => items.iter().find(|item| *item == element),
        ListRule::Keyed(keys) => items.iter().find(|item| same_element(keys, item, element)),
    }
}

fn rule_of<'a>(position: Position<'a>, items: &[Value]) -> ListRule<'a> {
    position.list_rule(items.first())
}

fn merge(live: &mut Value, config: &Value, position: Position<'_>) {
    match config {
        Value::Object(members) => {
            if !live.is_object() {
                *live = Value::Object(Map::new());
            }
            let Some(map) = live.as_object_mut() else { return };
            for (key, value) in members {
                if value.is_null() {
                    map.remove(key);
                } else {
                    merge(
                        map.entry(key.clone()).or_insert(Value::Null),
                        value,
                        position.member(key),
                    );
                }
            }
        }
        Value::Array(items) => {
            let rule = rule_of(position, items);
            let Some(found) = live.as_array_mut().filter(|_| rule != ListRule::Whole) else {
                *live = config.clone();
                return;
            };
            for element in items {
                let same = |item: &&mut Value| match &rule {
                    ListRule::Keyed(keys) => same_element(keys, item, element),
                    _ => *item == element,
                };
                match found.iter_mut().find(same) {
                    Some(item) => merge(item, element, position.element()),
                    None => found.push(element.clone()),
                }
            }
        }
        _ => *live = config.clone(),
    }
}

/// Removes from `live` the fields that are in `last`, but neither in `config` nor in any of `others`.
fn remove_no_longer_sent(
    live: &mut Value,
    last: &Value,
    config: &Value,
    others: &[&Value],
    position: Position<'_>,
) {
    match (live, last) {
        (Value::Object(map), Value::Object(members)) => {
            for (key, value) in members {
                let Some(found) = map.get_mut(key) else { continue };
                let theirs: Vec<&Value> = others.iter().filter_map(|other| other.get(key)).collect();
                let still = config.get(key);
                if still.is_none() && theirs.is_empty() && !keeps_parts(value, found) {
                    map.remove(key);
                    continue;
                }
                let empty = Value::Null;
                remove_no_longer_sent(
                    found,
                    value,
                    still.unwrap_or(&empty),
                    &theirs,
                    position.member(key),
                );
                let emptied = found.as_object().is_some_and(Map::is_empty);
                if still.is_none() && theirs.is_empty() && emptied {
                    map.remove(key);
                }
            }
        }
        (Value::Array(found), Value::Array(items)) => {
            let rule = rule_of(position, items);
            if rule == ListRule::Whole {
                return;
            }
            for element in items {
                let kept = counterpart(Some(config), &rule, element);
                let theirs: Vec<&Value> = others
                    .iter()
                    .filter_map(|other| counterpart(Some(other), &rule, element))
                    .collect();
                let same = |item: &Value| match &rule {
                    ListRule::Keyed(keys) => same_element(keys, item, element),
                    _ => item == element,
                };
                if kept.is_none() && theirs.is_empty() {
                    found.retain(|item| !same(item));
                } else if let (Some(item), Some(kept)) = (found.iter_mut().find(|item| same(item)), kept) {
                    remove_no_longer_sent(item, element, kept, &theirs, position.element());
                }
            }
        }
        _ => {}
    }
}

/// Returns true if an object has members beyond those that were applied. They are kept.
fn keeps_parts(applied: &Value, found: &Value) -> bool {
    match (applied, found) {
        (Value::Object(applied), Value::Object(found)) => found
            .iter()
            .any(|(key, value)| applied.get(key).is_none_or(|applied| keeps_parts(applied, value))),
        _ => false,
    }
}

/// Collects the fields that both configurations have and whose live value differs from `config`.
fn find_conflicts(
    config: &Value,
    theirs: &Value,
    live: &Value,
    path: &str,
    position: Position<'_>,
    found: &mut Vec<String>,
) {
    match (config, theirs) {
        (Value::Object(members), Value::Object(others)) => {
            for (key, value) in members {
                if let Some(other) = others.get(key) {
                    let live = live.get(key).unwrap_or(&Value::Null);
                    find_conflicts(
                        value,
                        other,
                        live,
                        &format!("{path}.{key}"),
                        position.member(key),
                        found,
                    );
                }
            }
        }
        (Value::Array(items), Value::Array(_)) if rule_of(position, items) != ListRule::Whole => {
            let rule = rule_of(position, items);
            for element in items {
                let Some(other) = counterpart(Some(theirs), &rule, element) else {
                    continue;
                };
                let live = counterpart(Some(live), &rule, element).unwrap_or(&Value::Null);
                let path = format!("{path}{}", element_path(&rule, element));
                find_conflicts(element, other, live, &path, position.element(), found);
            }
        }
        _ if config != live => found.push(path.to_owned()),
        _ => {}
    }
}

/// Returns an element's part of a path: `[name="main"]`.
fn element_path(rule: &ListRule<'_>, element: &Value) -> String {
    match rule {
        ListRule::Keyed(keys) => {
            let parts: Vec<String> = keys
                .iter()
                .map(|key| format!("{key}={}", element.get(key).unwrap_or(&Value::Null)))
                .collect();
            format!("[{}]", parts.join(","))
        }
        _ => format!("[{element}]"),
    }
}

/// Removes from `theirs` the fields that `config` overrides by force.
fn remove_overridden(theirs: &mut Value, config: &Value, live: &Value, position: Position<'_>) {
    let (Value::Object(members), Value::Object(others)) = (config, &mut *theirs) else {
        return;
    };
    let mut gone = Vec::new();
    for (key, other) in others.iter_mut() {
        let Some(value) = members.get(key) else { continue };
        let live = live.get(key).unwrap_or(&Value::Null);
        if value.is_object() && other.is_object() {
            remove_overridden(other, value, live, position.member(key));
            if other.as_object().is_some_and(Map::is_empty) {
                gone.push(key.clone());
            }
        } else if value != live {
            gone.push(key.clone());
        }
    }
    for key in gone {
        others.remove(&key);
    }
}
