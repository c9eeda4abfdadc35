//! A value that knows its line and column.

use std::collections::BTreeMap;

use kube_syntax::{field, item};
use serde_json::Value;

/// A place in a file. Both numbers count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

/// A value and its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where it begins.
    pub at: Position,
    /// What it is.
    pub content: Content,
}

/// A value.
#[derive(Clone, Debug)]
pub enum Content {
    /// Null, a boolean, a number or a string.
    Scalar(Value),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the file's order.
    Map(Vec<Entry>),
}

/// A key of a mapping and its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where the key stands.
    pub at: Position,
    /// The key.
    pub key: String,
    /// Its value.
    pub value: Node,
}

impl Node {
    /// The value under a key, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.content {
            Content::Map(entries) => entries.iter().find(|e| e.key == key).map(|e| &e.value),
            _ => None,
        }
    }

    /// The string under a key, if this is a mapping that has one there.
    pub fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.content {
            Content::Scalar(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// How many values it holds, itself included.
    pub fn size(&self) -> usize {
        1 + match &self.content {
            Content::Scalar(_) => 0,
            Content::List(items) => items.iter().map(Self::size).sum(),
            Content::Map(entries) => entries.iter().map(|e| e.value.size()).sum(),
        }
    }

    /// How deep its lists and mappings are nested, itself included; 0 for a scalar.
    pub fn depth(&self) -> usize {
        match &self.content {
            Content::Scalar(_) => 0,
            Content::List(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            Content::Map(entries) => 1 + entries.iter().map(|e| e.value.depth()).max().unwrap_or(0),
        }
    }

    /// The value without its places.
    pub fn to_json(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => items.iter().map(Self::to_json).collect(),
            Content::Map(entries) => entries
                .iter()
                .map(|e| (e.key.clone(), e.value.to_json()))
                .collect(),
        }
    }

    /// The place of each field below this value, by its path: for a field of a mapping the place of its key, for an item
    /// of a list the place of the item.
    pub fn positions(&self) -> Positions {
        let mut positions = BTreeMap::from([(String::new(), self.at)]);
        self.collect_positions("", &mut positions);
        Positions {
            root: self.at,
            by_path: positions,
        }
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

/// Where the fields of a document are, by their paths as Kubernetes writes them: `spec.containers[0].image`,
/// `metadata.labels[example.com/team]`. From [`Node::positions`].
#[derive(Clone, Debug)]
pub struct Positions {
    root: Position,
    by_path: BTreeMap<String, Position>,
}

impl Positions {
    /// The place of a field that is there.
    pub fn get(&self, path: &str) -> Option<Position> {
        self.by_path.get(path).copied()
    }

    /// The place of a field, or of the nearest field around it that is there: a missing field is reported where it
    /// should be.
    ///
    /// ```
    /// let documents = kube_manifest::parse("spec:\n  containers:\n  - name: main\n").unwrap();
    /// let at = documents[0].positions().nearest("spec.containers[0].image");
    /// assert_eq!((at.line, at.column), (3, 5));
    /// ```
    pub fn nearest(&self, path: &str) -> Position {
        let mut path = path;
        loop {
            match self.get(path) {
                Some(at) => return at,
                None if path.is_empty() => return self.root,
                None => path = path.rfind(['.', '[']).map_or("", |end| &path[..end]),
            }
        }
    }
}
