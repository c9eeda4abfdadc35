//! The patch types: JSON patch, merge patch and strategic merge patch.

use json_patch::PatchOperation;
use kube_schema::Schema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::request::body::parse_patch;
use crate::request::failure::{ApiResult, Failure};

/// The greatest number of operations in one JSON patch.
const MAX_PATCH_OPERATIONS: usize = 10_000;
/// The greatest number of copies in one JSON patch, because each can double the object.
const MAX_PATCH_COPIES: usize = 16;

/// The place of a merge in an object, which decides how a list there is merged.
#[derive(Clone, Copy)]
pub(crate) enum Position<'a> {
    /// In a built-in kind, in a member of this name.
    BuiltIn(&'a str),
    /// In a custom kind; `None` where the schema has no rule.
    Custom(Option<&'a Schema>),
}

/// The rule for merging a list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ListRule<'a> {
    /// The list is replaced as a whole.
    Whole,
    /// The list is a set of plain values.
    Set,
    /// Elements with the same values of these keys are the same element.
    Keyed(Vec<&'a str>),
}

impl<'a> Position<'a> {
    pub(crate) fn member(self, name: &'a str) -> Self {
        match self {
            Self::BuiltIn(_) => Self::BuiltIn(name),
            // Metadata is the same for all kinds and is not part of a schema.
            Self::Custom(_) if matches!(name, "ownerReferences" | "finalizers") => Self::BuiltIn(name),
            Self::Custom(schema) => Self::Custom(schema.and_then(|schema| schema.member(name))),
        }
    }

    pub(crate) fn element(self) -> Self {
        match self {
            Self::BuiltIn(_) => Self::BuiltIn(""),
            Self::Custom(schema) => Self::Custom(schema.and_then(Schema::items)),
        }
    }

    pub(crate) fn list_rule(self, sample: Option<&Value>) -> ListRule<'a> {
        let keyed = |keys: &[&'a str]| ListRule::Keyed(keys.to_vec());
        match self {
            Self::BuiltIn(name) => match name {
                "containers"
                | "initContainers"
                | "ephemeralContainers"
                | "env"
                | "volumes"
                | "imagePullSecrets"
                | "schedulingGates" => keyed(&["name"]),
                "ports" if sample.is_some_and(|port| port.get("containerPort").is_some()) => {
                    keyed(&["containerPort", "protocol"])
                }
                "ports" => keyed(&["port", "protocol"]),
                "volumeMounts" => keyed(&["mountPath"]),
                "volumeDevices" => keyed(&["devicePath"]),
                "conditions" => keyed(&["type"]),
                "ownerReferences" => keyed(&["uid"]),
                "hostAliases" | "podIPs" | "hostIPs" => keyed(&["ip"]),
                "finalizers" => ListRule::Set,
                _ => ListRule::Whole,
            },
            Self::Custom(Some(schema)) if schema.is_set() => ListRule::Set,
            Self::Custom(Some(schema)) if !schema.map_keys().is_empty() => {
                ListRule::Keyed(schema.map_keys().iter().map(String::as_str).collect())
            }
            Self::Custom(_) => ListRule::Whole,
        }
    }
}

/// Returns true if two elements of a keyed list are the same element.
pub(crate) fn same_element(keys: &[&str], one: &Value, other: &Value) -> bool {
    let part = |element: &Value, key: &str| match element.get(key) {
        None if key == "protocol" => Value::from("TCP"),
        found => found.cloned().unwrap_or_default(),
    };
    keys.iter().all(|key| part(one, key) == part(other, key))
}

/// Applies a JSON patch. An operation that does not fit rejects the whole patch.
pub(crate) fn apply_json_patch(object: &mut Value, body: &[u8]) -> ApiResult<()> {
    let patch = parse_patch(body)?;
    if !patch.is_array() {
        return Err(Failure::bad_request(
            "error decoding patch: json: no list of operations",
        ));
    }
    let patch = json_patch::Patch::deserialize(patch).map_err(|_| Failure::unprocessable())?;
    let copies = patch
        .iter()
        .filter(|operation| matches!(operation, PatchOperation::Copy(_)))
        .count();
    if patch.len() > MAX_PATCH_OPERATIONS || copies > MAX_PATCH_COPIES {
        return Err(Failure::too_large(MAX_PATCH_OPERATIONS));
    }
    // `object` is a scratch copy, so a failure needs no rollback.
    for operation in patch.0 {
        let operation = match operation {
            // As in the API server, replacing a missing member of an object adds it.
            PatchOperation::Replace(replace) if is_absent_member(object, replace.path.as_str()) => {
                PatchOperation::Add(json_patch::AddOperation {
                    path: replace.path,
                    value: replace.value,
                })
            }
            other => other,
        };
        json_patch::patch_unsafe(object, &[operation]).map_err(|_| Failure::unprocessable())?;
    }
    if !object.is_object() {
        return Err(Failure::unprocessable());
    }
    Ok(())
}

fn is_absent_member(object: &Value, path: &str) -> bool {
    let parent = path
        .rsplit_once('/')
        .and_then(|(parent, _)| object.pointer(parent));
    parent.is_some_and(Value::is_object) && object.pointer(path).is_none()
}

/// Applies a strategic merge patch: like a merge patch, but lists with keys are merged by element.
pub(crate) fn apply_strategic_patch(
    object: &mut Value,
    patch: Value,
    position: Position<'_>,
) -> ApiResult<()> {
    let Value::Object(mut members) = patch else {
        *object = patch;
        return Ok(());
    };
    let patch_text = members
        .contains_key("$patch")
        .then(|| go_text(&Value::Object(members.clone())));
    let directive = members.remove("$patch");
    match directive.as_ref().and_then(Value::as_str) {
        None | Some("merge") => {}
        Some("replace") => {
            *object = Value::Object(members);
            return Ok(());
        }
        Some("delete") => {
            *object = Value::Null;
            return Ok(());
        }
        Some(other) => {
            let why = format!(
                "unknown patch type: {other} in map: {}",
                patch_text.unwrap_or_default()
            );
            return Err(Failure::internal(why));
        }
    }
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Some(map) = object.as_object_mut() else {
        return Ok(());
    };
    if let Some(Value::Array(keep)) = members.remove("$retainKeys") {
        map.retain(|key, _| keep.iter().any(|kept| kept == key));
    }
    for (key, value) in members {
        if let Some(list) = key.strip_prefix("$deleteFromPrimitiveList/") {
            if let (Some(found), Some(gone)) =
                (map.get_mut(list).and_then(Value::as_array_mut), value.as_array())
            {
                found.retain(|item| !gone.contains(item));
            }
        } else if key.starts_with("$setElementOrder/") {
            // The order of the patch's elements is sufficient: see `reorder`.
        } else if value.is_null() {
            map.remove(&key);
        } else if let Value::Array(items) = value {
            let slot = map.entry(key.clone()).or_insert_with(|| Value::Array(Vec::new()));
            merge_list(slot, items, position.member(&key))?;
        } else {
            let slot = map.entry(key.clone()).or_insert(Value::Null);
            apply_strategic_patch(slot, value, position.member(&key))?;
            if slot.is_null() {
                map.remove(&key);
            }
        }
    }
    Ok(())
}

fn merge_list(list: &mut Value, patch: Vec<Value>, position: Position<'_>) -> ApiResult<()> {
    let rule = position.list_rule(patch.first());
    let Some(items) = list.as_array_mut() else {
        *list = Value::Array(patch);
        return Ok(());
    };
    let keys: Vec<&str> = match rule {
        ListRule::Whole => {
            *items = patch;
            return Ok(());
        }
        ListRule::Set => {
            let before = items.clone();
            for value in &patch {
                if !items.contains(value) {
                    items.push(value.clone());
                }
            }
            reorder(items, &patch, &before, |one, other| one == other);
            return Ok(());
        }
        // A strategic merge has one key for each list.
        ListRule::Keyed(keys) => keys.into_iter().take(1).collect(),
    };
    let is_replace = |element: &Value| element.get("$patch").and_then(Value::as_str) == Some("replace");
    let (sent, before) = (patch.clone(), items.clone());
    if patch.iter().any(is_replace) {
        *items = patch.into_iter().filter(|element| !is_replace(element)).collect();
        return Ok(());
    }
    for mut element in patch {
        if !keys.iter().all(|key| element.get(key).is_some()) {
            let key = keys.first().copied().unwrap_or_default();
            let found = go_text(&element);
            return Err(Failure::internal(format!(
                "map: {found} does not contain declared merge key: {key}"
            )));
        }
        if element.get("$patch").and_then(Value::as_str) == Some("delete") {
            items.retain(|item| !same_element(&keys, item, &element));
            continue;
        }
        match items.iter_mut().find(|item| same_element(&keys, item, &element)) {
            Some(item) => apply_strategic_patch(item, element, position.element())?,
            None => {
                if let Some(map) = element.as_object_mut() {
                    map.remove("$patch");
                }
                items.push(element);
            }
        }
    }
    let same = |one: &Value, other: &Value| same_element(&keys, one, other);
    reorder(items, &sent, &before, same);
    Ok(())
}

/// Orders the elements of a merged list. Elements of the patch keep the patch's order, and the other elements keep
/// theirs. Of an element of the patch and another element, the one that came first before is placed first. A new
/// element of the patch is placed before any other element.
fn reorder(items: &mut Vec<Value>, patch: &[Value], before: &[Value], same: impl Fn(&Value, &Value) -> bool) {
    let place = |list: &[Value], item: &Value| list.iter().position(|other| same(other, item));
    let (mut sent, mut others): (Vec<Value>, Vec<Value>) =
        items.drain(..).partition(|item| place(patch, item).is_some());
    sent.sort_by_key(|item| place(patch, item));
    others.sort_by_key(|item| place(before, item));
    let (mut sent, mut others) = (sent.into_iter().peekable(), others.into_iter().peekable());
    loop {
        let next = match (sent.peek(), others.peek()) {
            (Some(one), Some(other)) => match (place(before, one), place(before, other)) {
                (Some(one), Some(other)) if one > other => others.next(),
                _ => sent.next(),
            },
            (Some(_), None) => sent.next(),
            _ => others.next(),
        };
        match next {
            Some(item) => items.push(item),
            None => return,
        }
    }
}

/// Formats a value as Go's `%v` does.
fn go_text(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut members: Vec<String> = map
                .iter()
                .map(|(key, member)| format!("{key}:{}", go_text(member)))
                .collect();
            members.sort();
            format!("map[{}]", members.join(" "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_text).collect();
            format!("[{}]", items.join(" "))
        }
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}
