#![doc = include_str!("../README.md")]

mod field_path;
pub mod names;
pub mod quantity;

pub use field_path::{FieldPath, field, item};
