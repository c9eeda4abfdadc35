//! `training-operator local run`.

use std::process::ExitCode;

use crate::cli::LocalRun;
use crate::exit;

/// Runs the jobs as local processes.
pub(crate) fn run(arguments: &LocalRun) -> ExitCode {
    let _ = arguments;
    anstream::eprintln!("local run is not there yet");
    exit::bad_input()
}
