//! The paths of fields, written out only when something is wrong with a field.

use std::fmt;

use crate::validate::field;

/// Where a field is, as in `spec.containers[0].image`.
#[derive(Clone, Copy)]
pub(crate) enum FieldPath<'a> {
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
    pub(crate) fn member(&'a self, name: &'a str) -> Self {
        Self::Member(self, name)
    }

    pub(crate) fn key(&'a self, key: &'a str) -> Self {
        Self::Key(self, key)
    }

    pub(crate) fn item(&'a self, index: usize) -> Self {
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
