//! `training-operator`: the operator, and its commands that need no cluster.
//!
//! This crate is a program. Its only interface is the command line.
//!
//! Most commands are those of [`training_job_cli`], which every operator has. The kinds of job, `convert` and
//! the template for authors are in [`training_review`]. This package adds the environment of their local processes
//! (`kinds`), the traces of former operators (`installation`), the remote shell of MPIJobs (`remote_shell`), and the test
//! of an installation (`smoke_test`).

mod cli;
mod installation;
mod kinds;
#[cfg(feature = "cluster")]
mod remote_shell;
mod run;
mod smoke_test;

/// Runs the program with the arguments of the process and returns its exit code.
pub fn main() -> std::process::ExitCode {
    cli::main()
}
