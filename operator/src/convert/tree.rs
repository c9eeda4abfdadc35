//! Changes to the tree of a document, whose values know where they stood in the file.

use kube_manifest::{Content, Entry, Node, Position};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// The place of what was in no file.
const NOWHERE: Position = Position { line: 0, column: 0 };

/// A scalar that was in no file.
pub(super) fn scalar(value: impl Into<Value>) -> Node {
    Node {
        at: NOWHERE,
        content: Content::Scalar(value.into()),
    }
}

/// A field that was in no file.
pub(super) fn entry(key: &str, value: Node) -> Entry {
    Entry {
        at: NOWHERE,
        key: key.to_owned(),
        value,
    }
}

/// The fields of a mapping.
pub(super) fn entries(node: &mut Node) -> Option<&mut Vec<Entry>> {
    match &mut node.content {
        Content::Map(entries) => Some(entries),
        Content::Scalar(_) | Content::List(_) => None,
    }
}

/// The items of a list.
pub(super) fn items(node: &mut Node) -> Option<&mut Vec<Node>> {
    match &mut node.content {
        Content::List(items) => Some(items),
        Content::Scalar(_) | Content::Map(_) => None,
    }
}

/// The value under a key.
pub(super) fn child<'n>(node: &'n mut Node, key: &str) -> Option<&'n mut Node> {
    let entry = entries(node)?.iter_mut().find(|entry| entry.key == key)?;
    Some(&mut entry.value)
}

/// The value below a path of keys.
pub(super) fn below<'n>(node: &'n mut Node, keys: &[&str]) -> Option<&'n mut Node> {
    keys.iter().try_fold(node, |node, key| child(node, key))
}

/// Takes a field out.
pub(super) fn take(node: &mut Node, key: &str) -> Option<Entry> {
    let entries = entries(node)?;
    let at = entries.iter().position(|entry| entry.key == key)?;
    Some(entries.remove(at))
}

/// Sets a field: in its place if there is one, else behind all others.
pub(super) fn put(node: &mut Node, new: Entry) {
    let Some(entries) = entries(node) else { return };
    match entries.iter_mut().find(|entry| entry.key == new.key) {
        Some(old) => *old = new,
        None => entries.push(new),
    }
}

/// Where a field stands among the others, from 0.
pub(super) fn index(node: &Node, key: &str) -> Option<usize> {
    match &node.content {
        Content::Map(entries) => entries.iter().position(|entry| entry.key == key),
        Content::Scalar(_) | Content::List(_) => None,
    }
}

/// Adds a field before the one that stands there, which may be none.
pub(super) fn insert(node: &mut Node, before: usize, new: Entry) {
    if let Some(entries) = entries(node) {
        entries.insert(before.min(entries.len()), new);
    }
}

/// The mapping below a path of keys. What is missing or null on the way is made.
pub(super) fn mapping<'n>(node: &'n mut Node, keys: &[&str]) -> Option<&'n mut Node> {
    let mut node = node;
    for key in keys {
        if !has(node, key) {
            let empty = Node {
                at: NOWHERE,
                content: Content::Map(Vec::new()),
            };
            put(node, entry(key, empty));
        }
        node = child(node, key)?;
    }
    Some(node)
}

/// Whether a field is there and not null.
pub(super) fn has(node: &Node, key: &str) -> bool {
    node.get(key).is_some_and(|value| !is_null(value))
}

/// Whether a value is null.
pub(super) fn is_null(node: &Node) -> bool {
    matches!(node.content, Content::Scalar(Value::Null))
}

/// The string that a value is.
pub(super) fn text(node: &Node) -> Option<&str> {
    match &node.content {
        Content::Scalar(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// The integer that a value is.
pub(super) fn integer(node: &Node) -> Option<i64> {
    match &node.content {
        Content::Scalar(value) => value.as_i64(),
        Content::List(_) | Content::Map(_) => None,
    }
}

/// A document, to be written with its fields in their order.
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
