//! The path of a field: `spec.containers[0].image`. The text is written only when it is needed.

use std::fmt;

/// The path of a field, as in `spec.containers[0].image`.
#[derive(Clone, Copy)]
pub enum FieldPath<'a> {
    /// A path that exists as text.
    At(&'a str),
    /// A member, or a field some levels below, as in `a.b`.
    Member(&'a FieldPath<'a>, &'a str),
    /// A key that may be any text.
    Key(&'a FieldPath<'a>, &'a str),
    /// An item of a list.
    Item(&'a FieldPath<'a>, usize),
}

impl<'a> FieldPath<'a> {
    /// Returns the path of a member of the object at this path.
    pub fn member(&'a self, name: &'a str) -> Self {
        Self::Member(self, name)
    }

    /// Returns the path of a key that may be any text, in the map at this path.
    pub fn key(&'a self, key: &'a str) -> Self {
        Self::Key(self, key)
    }

    /// Returns the path of an item of the list at this path.
    pub fn item(&'a self, index: usize) -> Self {
        Self::Item(self, index)
    }
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from(*self))
    }
}

impl From<FieldPath<'_>> for String {
    fn from(path: FieldPath<'_>) -> Self {
        match path {
            FieldPath::At(path) => path.to_owned(),
            FieldPath::Member(path, name) => Self::from(*path) + "." + name,
            FieldPath::Key(path, key) => field(&Self::from(*path), key),
            FieldPath::Item(path, index) => format!("{path}[{index}]"),
        }
    }
}

/// Returns the path of `key` below `path`: `path.key`, or `path[key]` if the key is not a plain word, such as the key
/// of a label.
pub fn field(path: &str, key: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if key.is_empty() || !key.chars().all(plain) {
        format!("{path}[{key}]")
    } else if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// Returns the path of item `n` of the list at `path`.
pub fn item(path: &str, n: usize) -> String {
    format!("{path}[{n}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_back_without_doubt() {
        for (path, key, expected) in [
            ("", "spec", "spec"),
            ("spec", "a-b_C1", "spec.a-b_C1"),
            ("spec", "example.com/a", "spec[example.com/a]"),
            ("spec", "", "spec[]"),
            ("", "a.b", "[a.b]"),
        ] {
            assert_eq!(field(path, key), expected);
        }
    }
}
