//! The program that a container starts, and its surroundings.

use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Launch {
    pub(super) program: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) directory: PathBuf,
    /// The shell script that brings commands of other pods into the pod, in place of running them directly.
    pub(super) entrance: Option<String>,
}

/// Quotes a word for a shell.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
