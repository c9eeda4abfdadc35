#![doc = include_str!("../README.md")]

mod comment;
mod file;
mod finding;
mod lines;
mod look_alike;
mod node;
mod parser;
mod revision;
mod scalar;
mod source;
mod syntax_error;

pub use comment::{Comment, comments};
pub use file::MAX_FILE_BYTES;
pub use finding::{Finding, Severity};
pub use look_alike::{LookAlike, look_alike};
pub use node::{Content, Entry, MAX_DEPTH, Node, Position, Positions};
pub use parser::{MAX_VALUES, parse, parse_until_error};
pub use source::{NoText, Source, is_missing, manifests_below, read_text, sources};
pub use syntax_error::SyntaxError;
