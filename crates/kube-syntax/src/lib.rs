//! The syntax of Kubernetes names, quantities and field paths, as the API server reads them.

mod field_path;
pub mod names;
pub mod quantity;

pub use field_path::{FieldPath, field, item};
