//! The JSON of objects: documents that share what a write leaves as it was, metadata, and what is wrong with a field.

pub(crate) mod cause;
pub(crate) mod document;
pub(crate) mod json;
pub(crate) mod members;
pub(crate) mod metadata;
