//! The exit codes of the program, and the errors that end a command.

use std::process::ExitCode;
use std::{fmt, io};

/// Returns the code for bad YAML or usage, which is also the code of clap.
pub(crate) fn bad_input() -> ExitCode {
    ExitCode::from(2)
}

/// Returns the code of a check that found an error, a difference or a stale file.
pub(crate) fn check_failed() -> ExitCode {
    ExitCode::from(1)
}

/// The reason why a command failed.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    /// Returns the failure of `what` because of `why`.
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
