//! `training-operator`: the operator, and its commands that need no cluster.
//!
//! This crate is a program. Its only interface is the command line.
//!
//! Modules import in one direction. `cli` lists the commands. Each command has its arguments in its own module
//! (`render`, `validate`, `local` ...). The commands use shared modules (`check`, `report`, `write` ...), and all of
//! these use `kinds`, the table of the kinds of job.

mod check;
mod cli;
mod cluster;
mod controller_config;
mod convert;
mod crds;
mod diff;
mod doctor;
mod exit;
mod explain;
#[cfg(feature = "__fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod kinds;
mod lease;
mod line_diff;
mod local;
mod manual;
mod remote_shell;
mod render;
mod report;
mod run;
mod settings;
mod snapshot;
mod table;
mod validate;
mod write;

/// Runs the program with the arguments of the process and returns its exit code.
pub fn main() -> std::process::ExitCode {
    cli::main()
}
