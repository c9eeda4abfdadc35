#![doc = include_str!("../README.md")]

mod comment;
mod finding;
mod node;
mod parser;
mod revision;
mod scalar;
mod source;
mod syntax_error;

pub use comment::{Comment, comments};
pub use finding::{Finding, Severity};
pub use node::{Content, Entry, Node, Position, Positions};
pub use parser::{MAX_DEPTH, MAX_VALUES, parse, parse_until_error};
pub use source::{MAX_FILE_BYTES, Source, manifests_below, sources};
pub use syntax_error::SyntaxError;
