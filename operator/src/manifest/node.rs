//! A YAML value that knows where it stands.

use std::collections::BTreeMap;

use serde_json::Value;
use training_job::validate::{field, item};

/// A place in a file, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    /// The line.
    pub(crate) line: usize,
    /// The column, in characters.
    pub(crate) column: usize,
}

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Where it begins.
    pub(crate) at: Position,
    /// What it is.
    pub(crate) content: Content,
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// Null, a boolean, a number or a string.
    Scalar(Value),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the file's order.
    Map(Vec<Entry>),
}

/// A key of a mapping and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Where the key stands.
    pub(crate) at: Position,
    /// The key.
    pub(crate) key: String,
    /// Its value.
    pub(crate) value: Node,
}

impl Node {
    /// The value of a key, if this is a mapping that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match &self.content {
            Content::Map(entries) => entries.iter().find(|e| e.key == key).map(|e| &e.value),
            _ => None,
        }
    }

    /// The string under a key.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.content {
            Content::Scalar(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// How many values it holds, itself included.
    pub(crate) fn size(&self) -> usize {
        1 + match &self.content {
            Content::Scalar(_) => 0,
            Content::List(items) => items.iter().map(Self::size).sum(),
            Content::Map(entries) => entries.iter().map(|e| e.value.size()).sum(),
        }
    }

    /// How many lists and mappings lie in each other, itself included.
    pub(crate) fn depth(&self) -> usize {
        match &self.content {
            Content::Scalar(_) => 0,
            Content::List(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            Content::Map(entries) => 1 + entries.iter().map(|e| e.value.depth()).max().unwrap_or(0),
        }
    }

    /// The value without its places.
    pub(crate) fn to_json(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => items.iter().map(Self::to_json).collect(),
            Content::Map(entries) => entries
                .iter()
                .map(|e| (e.key.clone(), e.value.to_json()))
                .collect(),
        }
    }

    /// Where each field stands, by its path as errors name it: a key's place for the fields of a
    /// mapping, the item's for a list.
    pub(crate) fn positions(&self) -> BTreeMap<String, Position> {
        let mut positions = BTreeMap::from([(String::new(), self.at)]);
        self.collect_positions("", &mut positions);
        positions
    }

    fn collect_positions(&self, path: &str, positions: &mut BTreeMap<String, Position>) {
        match &self.content {
            Content::Scalar(_) => {}
            Content::List(items) => {
                for (n, node) in items.iter().enumerate() {
                    let at = item(path, n);
                    node.collect_positions(&at, positions);
                    positions.insert(at, node.at);
                }
            }
            Content::Map(entries) => {
                for entry in entries {
                    let at = field(path, &entry.key);
                    entry.value.collect_positions(&at, positions);
                    positions.insert(at, entry.at);
                }
            }
        }
    }
}
