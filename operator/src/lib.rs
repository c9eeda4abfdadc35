//! `training-operator`: the operator, and its commands that need no cluster.
//!
//! This crate is a program. Its only interface is the command line.
//!
//! Most commands are those of [`training_job_cli`], which every operator has. Here are the kinds of job (`kinds`),
//! what is known of the operators that ran them before (`installation`, `convert`), `remote_shell` for MPIJobs, and `new_kind` for authors.

mod cli;
mod convert;
#[cfg(feature = "__fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod installation;
mod kinds;
mod new_kind;
mod remote_shell;
mod run;

/// Runs the program with the arguments of the process and returns its exit code.
pub fn main() -> std::process::ExitCode {
    cli::main()
}
