#![doc = include_str!("../README.md")]

mod comment;
mod file;
mod finding;
mod node;
mod parser;
mod revision;
mod scalar;
mod source;
mod syntax_error;

pub use comment::{Comment, comments};
pub use file::MAX_FILE_BYTES;
pub use finding::{Finding, Severity};
pub use node::{Content, Entry, Node, Position, Positions};
pub use parser::{MAX_DEPTH, MAX_VALUES, parse, parse_until_error};
pub use source::{Source, is_missing, manifests_below, sources};
pub use syntax_error::SyntaxError;
