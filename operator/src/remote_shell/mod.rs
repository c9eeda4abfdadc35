//! `training-operator remote-shell`: the remote shell of `mpirun` in the launcher of an MPIJob, and its installation.

mod exec;
mod install;
mod wait;

use std::process::ExitCode;

use clap::Subcommand;

use training_job_cli::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command in a pod, and return its output and its exit code.
    Exec(exec::Args),
    /// Copy this program into a directory, with a kubectl script that runs it for exec.
    Install(install::Args),
}

pub(crate) fn run(command: &Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Exec(arguments) => exec::run(arguments),
        Command::Install(arguments) => install::run(arguments),
    }
}
