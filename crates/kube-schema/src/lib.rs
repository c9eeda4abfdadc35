#![doc = include_str!("../README.md")]

mod check;
mod fill;
mod path;
mod schema;
mod violation;

pub use self::{
    path::{Path, Step},
    schema::{Schema, Type},
    violation::{Combination, Unit, Violation, ViolationKind},
};

/// Returns true for the members that every object has, independent of its schema.
fn is_type_or_metadata(key: &str) -> bool {
    matches!(key, "apiVersion" | "kind" | "metadata")
}
