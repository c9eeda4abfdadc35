//! `training-operator remote-shell`: what `mpirun` calls in the launcher of an MPIJob, and how it comes there.

mod exec;
mod install;
mod wait;

use std::process::ExitCode;

use clap::Subcommand;

use crate::exit::Failure;

/// In other pods.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command in a pod; its output and its exit code are the command's.
    Exec(exec::Args),
    /// Copy this program into a directory, with a kubectl beside it that calls it for exec.
    Install(install::Args),
}

/// Runs a command, or copies the program.
pub(crate) fn run(command: &Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Exec(arguments) => exec::run(arguments),
        Command::Install(arguments) => install::run(arguments),
    }
}
