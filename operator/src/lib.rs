//! `training-operator`: the operator, and what can be asked of it without a cluster.
//!
//! A program and no library: nothing here is an interface but the program's command line.
//!
//! Imports run one way: [`cli`] names the commands, each command has its arguments beside it ([`render`], [`validate`],
//! [`local`] ...), the commands use what they share ([`check`], [`report`], [`write`] ...), and all of that uses
//! [`kinds`], which lists the types of job.
#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the program has no other readers than who works on it"
)]

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

/// The program.
pub fn main() -> std::process::ExitCode {
    cli::main()
}
