//! How the program ends.

use std::process::ExitCode;
use std::{fmt, io};

/// Bad YAML or usage; the same code that clap ends with.
pub(crate) fn bad_input() -> ExitCode {
    ExitCode::from(2)
}

/// A check has found something: an error, a difference, a stale file.
pub(crate) fn found() -> ExitCode {
    ExitCode::from(1)
}

/// What kept a command from doing its work.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    /// `what` failed because of `why`.
    pub(crate) fn new(what: &str, why: impl fmt::Display) -> Self {
        Self(format!("{what}: {why}"))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
