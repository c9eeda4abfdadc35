//! Edits the tree of a document. Each value keeps its position in the file.

use kube_manifest::{Content, Entry, Node, Position};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// The position of a value that was not in the file.
const NO_POSITION: Position = Position { line: 0, column: 0 };

/// Returns a scalar that was not in the file.
pub(super) fn scalar(value: impl Into<Value>) -> Node {
    Node::new(NO_POSITION, Content::Scalar(value.into()))
}

/// Returns a field that was not in the file.
pub(super) fn entry(key: &str, value: Node) -> Entry {
    Entry {
        at: NO_POSITION,
        key: key.to_owned(),
        value,
    }
}

/// Returns the fields of a mapping.
pub(super) fn entries(node: &mut Node) -> Option<&mut Vec<Entry>> {
    match &mut node.content {
        Content::Map(entries) => Some(entries),
        Content::Scalar(_) | Content::List(_) => None,
    }
}

/// Returns the items of a list.
pub(super) fn items(node: &mut Node) -> Option<&mut Vec<Node>> {
    match &mut node.content {
        Content::List(items) => Some(items),
        Content::Scalar(_) | Content::Map(_) => None,
    }
}

/// Returns the value of a key.
pub(super) fn child<'n>(node: &'n mut Node, key: &str) -> Option<&'n mut Node> {
    let entry = entries(node)?.iter_mut().find(|entry| entry.key == key)?;
    Some(&mut entry.value)
}

/// Returns the value at a path of keys.
pub(super) fn below<'n>(node: &'n mut Node, keys: &[&str]) -> Option<&'n mut Node> {
    keys.iter().try_fold(node, |node, key| child(node, key))
}

/// Removes a field and returns it.
pub(super) fn take(node: &mut Node, key: &str) -> Option<Entry> {
    let entries = entries(node)?;
    let at = entries.iter().position(|entry| entry.key == key)?;
    Some(entries.remove(at))
}

/// Sets a field: in place if it exists, otherwise behind all others.
pub(super) fn put(node: &mut Node, new: Entry) {
    let Some(entries) = entries(node) else { return };
    match entries.iter_mut().find(|entry| entry.key == new.key) {
        Some(old) => *old = new,
        None => entries.push(new),
    }
}

/// Returns the position of a field among the fields, from 0.
pub(super) fn index(node: &Node, key: &str) -> Option<usize> {
    match &node.content {
        Content::Map(entries) => entries.iter().position(|entry| entry.key == key),
        Content::Scalar(_) | Content::List(_) => None,
    }
}

/// Inserts a field at this position, or at the end if the position is out of range. The field must not exist: convert
/// refuses its own output if a key is duplicate, and replacing the field here would lose it in silence.
pub(super) fn insert(node: &mut Node, before: usize, new: Entry) {
    if let Some(entries) = entries(node) {
        entries.insert(before.min(entries.len()), new);
    }
}

/// Returns the mapping at a path of keys. Missing or null mappings on the path are created.
pub(super) fn mapping<'n>(node: &'n mut Node, keys: &[&str]) -> Option<&'n mut Node> {
    let mut node = node;
    for key in keys {
        if !has(node, key) {
            let empty = Node::new(NO_POSITION, Content::Map(Vec::new()));
            put(node, entry(key, empty));
        }
        node = child(node, key)?;
    }
    Some(node)
}

/// Returns true if a field exists and is not null.
pub(super) fn has(node: &Node, key: &str) -> bool {
    node.get(key).is_some_and(|value| !is_null(value))
}

pub(super) fn is_null(node: &Node) -> bool {
    matches!(node.content, Content::Scalar(Value::Null))
}

pub(super) fn text(node: &Node) -> Option<&str> {
    match &node.content {
        Content::Scalar(Value::String(text)) => Some(text),
        _ => None,
    }
}

pub(super) fn integer(node: &Node) -> Option<i64> {
    match &node.content {
        Content::Scalar(value) => value.as_i64(),
        Content::List(_) | Content::Map(_) => None,
    }
}

/// Calls `f` for each role of this mapping of a spec.
pub(super) fn for_each_role(spec: &mut Node, specs: &str, mut f: impl FnMut(&str, &mut Node)) {
    let roles = child(spec, specs).and_then(entries);
    for role in roles.into_iter().flatten() {
        if matches!(role.value.content, Content::Map(_)) {
            f(&role.key, &mut role.value);
        }
    }
}

/// A document that serializes its fields in their order.
pub(super) struct Ordered<'n>(pub(super) &'n Node);

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.content {
            Content::Scalar(value) => value.serialize(serializer),
            Content::List(items) => serializer.collect_seq(items.iter().map(Ordered)),
            Content::Map(entries) => {
                serializer.collect_map(entries.iter().map(|entry| (&entry.key, Ordered(&entry.value))))
            }
        }
    }
}
