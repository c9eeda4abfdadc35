//! The exit codes of the program, and the errors that end a command.

use std::process::ExitCode;
use std::{fmt, io};

use training_job_program::program;

use crate::call_error;

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

    /// Returns the failure of `what` with all causes of the error, except those that an earlier text contains.
    pub fn of_error(what: &str, error: &anyhow::Error) -> Self {
        let mut text = String::new();
        for cause in error.chain().map(call_error::text) {
            match text.contains(&cause) {
                true => {}
                false if text.is_empty() => text = cause,
                false => text = format!("{text}: {cause}"),
            }
        }
        Self::new(what, text)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_the_text_contains_is_not_repeated() {
        let cause = || io::Error::from(io::ErrorKind::NotFound);
        let error = anyhow::Error::new(cause())
            .context("no config: entity not found")
            .context("no client");
        let failure = Failure::of_error("local run", &error);
        assert_eq!(
            failure.to_string(),
            "local run: no client: no config: entity not found"
        );
        let failure = Failure::of_error("local run", &cause().into());
        assert_eq!(failure.to_string(), "local run: entity not found");
    }
}
