#![doc = include_str!("../README.md")]

mod breach;
mod check;
mod fill;
mod path;
mod schema;

pub use self::{
    breach::{Breach, Combination, Unit, Wrong},
    path::{Path, Step},
    schema::{Schema, Type},
};

/// Returns true for the members that every object has, whatever its schema.
fn is_type_or_metadata(key: &str) -> bool {
    matches!(key, "apiVersion" | "kind" | "metadata")
}
