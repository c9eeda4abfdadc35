#![doc = include_str!("../README.md")]

mod check;
mod field_path;
mod fill;
pub mod names;
mod path;
pub mod quantity;
mod schema;
mod violation;

pub use self::{
    field_path::{FieldPath, field, item},
    path::{Path, Step},
    schema::{Schema, Type},
    violation::{Combination, Unit, Violation, ViolationKind},
};

/// Returns true for the members that every object has, independent of its schema.
fn is_type_or_metadata(key: &str) -> bool {
    matches!(key, "apiVersion" | "kind" | "metadata")
}
