//! Manifests: files, directories and standard input → documents whose every field knows its place.

mod node;
mod revision;
mod scalar;
mod source;
mod yaml;

pub(crate) use node::{Content, Node, Position};
pub(crate) use source::{Source, manifests_below, sources};
pub(crate) use yaml::documents;
