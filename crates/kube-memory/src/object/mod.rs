//! The JSON of objects: documents whose versions share unchanged members, metadata, and the errors of fields.

pub(crate) mod cause;
pub(crate) mod document;
pub(crate) mod json;
pub(crate) mod members;
pub(crate) mod metadata;
