//! The exit codes of the program, and the errors that end a command.

use std::process::ExitCode;
use std::{fmt, io};

use training_job_program::program;

/// Returns the code for bad YAML or usage, which is also the code of clap.
pub fn bad_input() -> ExitCode {
    ExitCode::from(2)
}

/// Returns the code of a check that found an error, a difference or a stale file.
pub fn check_failed() -> ExitCode {
    ExitCode::from(1)
}

/// Runs a command and returns its exit code. A failure is printed after the name of the program.
pub fn code(command: impl FnOnce() -> Result<ExitCode, Failure>) -> ExitCode {
    // If the variable CI is set, anstream writes styles even to a dumb terminal.
    if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        anstream::ColorChoice::Never.write_global();
    }
    command().unwrap_or_else(|failure| {
        anstream::eprintln!("{}: {failure}", program().name);
        bad_input()
    })
}

/// The reason why a command failed.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    /// Returns the failure of `what` because of `why`.
    pub fn new(what: &str, why: impl fmt::Display) -> Self {
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
