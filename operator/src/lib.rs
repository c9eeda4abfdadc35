//! `training-operator`: the operator, and its commands that need no cluster.
//!
//! This crate is a program. Its only interface is the command line.
//!
//! Most commands are those of [`training_job_cli`], which every operator has. The kinds of job and `convert`
//! are in [`training_review`]. This package adds the environment of their local processes (`kinds`), the traces of
//! former operators (`installation`), the remote shell of MPIJobs (`remote_shell`), the test of an
//! installation (`smoke_test`), and the template for authors (`new_kind`).

mod cli;
mod installation;
mod kinds;
mod new_kind;
mod remote_shell;
mod run;
mod smoke_test;

/// Runs the program with the arguments of the process and returns its exit code.
pub fn main() -> std::process::ExitCode {
    cli::main()
}
