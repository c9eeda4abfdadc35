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

/// What every object has, whatever its schema says.
fn is_type_or_metadata(key: &str) -> bool {
    matches!(key, "apiVersion" | "kind" | "metadata")
}
