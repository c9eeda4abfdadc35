//! Where a field is: `spec.containers[0].image`. Written out only when something is wrong with the field.

use std::fmt;

/// Where a field is, as in `spec.containers[0].image`.
#[derive(Clone, Copy)]
pub enum FieldPath<'a> {
    /// Here.
    At(&'a str),
    /// In a member, or some levels below it.
    Member(&'a FieldPath<'a>, &'a str),
    /// Under a key that may be any text.
    Key(&'a FieldPath<'a>, &'a str),
    /// In an item of a list.
    Item(&'a FieldPath<'a>, usize),
}

impl<'a> FieldPath<'a> {
    /// The path of a member of the object here.
    pub fn member(&'a self, name: &'a str) -> Self {
        Self::Member(self, name)
    }

    /// The path of what is under a key here that may be any text.
    pub fn key(&'a self, key: &'a str) -> Self {
        Self::Key(self, key)
    }

    /// The path of an item of the list here.
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

/// The path of `key` below `path`: `path.key`, or `path[key]` if the key is not a plain word, as the
/// keys of labels are.
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

/// The path of item `n` of the list at `path`.
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
