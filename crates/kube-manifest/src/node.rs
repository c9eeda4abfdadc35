//! Values with their lines and columns.

use std::collections::BTreeMap;

use kube_schema::{field, item};
use serde_json::Value;

/// The greatest depth of nested values, aliases expanded. The YAML parser has the same bound for a file without
/// aliases. [`Node::positions`] costs the square of the depth, because each value has a path of that length.
pub const MAX_DEPTH: usize = 256;

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
    /// The place where the value begins.
    pub at: Position,
    /// The value itself.
    pub content: Content,
    /// The text of a boolean or number in the file, such as `yes` or `1e3`, if JSON has another text for it.
    pub written: Option<Box<str>>,
}

/// The content of a value.
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
    /// The place of the key.
    pub at: Position,
    /// The key.
    pub key: String,
    /// The key's value.
    pub value: Node,
}

impl Node {
    /// Makes a value at this place.
    pub fn new(at: Position, content: Content) -> Self {
        Self {
            at,
            content,
            written: None,
        }
    }

    /// Returns the value under a key, if this is a mapping that has the key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.content {
            Content::Map(entries) => entries.iter().find(|e| e.key == key).map(|e| &e.value),
            _ => None,
        }
    }

    /// Returns the string under a key, if this is a mapping with a string there.
    pub fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.content {
            Content::Scalar(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns the value without its places.
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

    /// Returns the place of each field below this value, by its path. A field of a mapping has the place of its key,
    /// an item of a list has its own place.
    pub fn positions(&self) -> Positions {
        let mut positions = Positions {
            root: self.at,
            by_path: BTreeMap::from([(String::new(), self.at)]),
            written: BTreeMap::new(),
        };
        self.collect_positions("", &mut positions);
        positions
    }

    fn collect_positions(&self, path: &str, positions: &mut Positions) {
        match &self.content {
            Content::Scalar(_) => {
                let written = self.written.clone().map(|text| (path.to_owned(), text));
                positions.written.extend(written);
            }
            Content::List(items) => {
                for (n, node) in items.iter().enumerate() {
                    let at = item(path, n);
                    node.collect_positions(&at, positions);
                    positions.by_path.insert(at, node.at);
                }
            }
            Content::Map(entries) => {
                for entry in entries {
                    let at = field(path, &entry.key);
                    entry.value.collect_positions(&at, positions);
                    positions.by_path.insert(at, entry.at);
                }
            }
        }
    }
}

/// The places of a document's fields. The paths have the form that Kubernetes uses: `spec.containers[0].image`,
/// `metadata.labels[example.com/team]`. From [`Node::positions`].
#[derive(Clone, Debug)]
pub struct Positions {
    root: Position,
    by_path: BTreeMap<String, Position>,
    written: BTreeMap<String, Box<str>>,
}

impl Positions {
    /// Returns the place of an existing field.
    pub fn get(&self, path: &str) -> Option<Position> {
        self.by_path.get(path).copied()
    }

    /// Returns the text of a boolean or number in the file, such as `yes` or `1e3`, if JSON has another text for it.
    pub fn written(&self, path: &str) -> Option<&str> {
        self.written.get(path).map(|text| &**text)
    }

    /// Returns the place of a field, or of the nearest existing field around it. A missing field can so be reported
    /// where it should be.
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
