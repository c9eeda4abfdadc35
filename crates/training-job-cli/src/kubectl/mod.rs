//! `kubectl training`: jobs of a cluster for their users.
//!
//! Each view observes, derives a value, and prints it: `observe` reads a job with its pods and events, and the views are
//! functions of what it returns.

mod connection;
mod events;
mod list;
mod logs;
mod observe;
pub(crate) mod outline;
mod output;
mod replicas;
mod situation;
mod status;
mod target;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use kube::runtime::watcher;
use training_job_controller::process::Program;

use crate::exit;
use crate::help::help;
use crate::kinds::Kinds;

/// The name by which kubectl finds the plugin, and that of the program that completes its words.
const PLUGIN: &str = "kubectl-training";

/// The name in help texts and messages.
const NAME: &str = "kubectl training";

const HELP: &str = "\
A job is named NAME or KIND/NAME. A NAME that several kinds have is an error that lists them.

Examples:
  {program} list -A
  {program} status train
  {program} status pytorchjob/train -n ml

Exit codes:
  0    success
  1    the job failed, or a wait ended without its condition
  2    no such job, missing rights, or bad usage
  130  ended by Ctrl-C";

/// List, inspect and control training jobs of all kinds.
#[derive(Debug, Parser)]
#[command(name = PLUGIN, bin_name = NAME, after_help = help(HELP), arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    List(list::Args),
    Status(status::Args),
    Logs(logs::Args),
}

/// The kubectl plugin `training`: the program under the name `kubectl-training`.
#[derive(Debug)]
pub struct Kubectl;

impl Kubectl {
    /// Returns true if the program was called as the plugin: the file name of its first argument is
    /// `kubectl-training`.
    pub fn is_called(arguments: impl IntoIterator<Item = OsString>) -> bool {
        let program = arguments.into_iter().next().unwrap_or_default();
        Path::new(&program).file_stem().is_some_and(|name| name == PLUGIN)
    }

    /// Runs the command of the process' arguments and returns its exit code. `program` is the program under its own
    /// name.
    pub fn main(mut program: Program, kinds: &Kinds) -> ExitCode {
        NAME.clone_into(&mut program.name);
        let version = program.version;
        program.install();
        let command = Arguments::command();
        let command = match version {
            Some(version) => command.version(version),
            None => command,
        };
        let arguments = Arguments::from_arg_matches(&command.get_matches());
        let arguments = arguments.unwrap_or_else(|error| error.exit());
        exit::code(|| match &arguments.verb {
            Verb::List(arguments) => list::run(arguments, kinds),
            Verb::Status(arguments) => status::run(arguments, kinds),
            Verb::Logs(arguments) => logs::run(arguments, kinds),
        })
    }
}

/// Returns the error of a watch if it is about rights. A watch continues by itself after other errors.
fn watch_error(error: watcher::Error, resource: &str) -> anyhow::Result<()> {
    let denied = match error {
        watcher::Error::InitialListFailed(error) if observe::is_forbidden(&error) => Some(("list", error)),
        watcher::Error::WatchStartFailed(error) if observe::is_forbidden(&error) => Some(("watch", error)),
        _ => None,
    };
    match denied {
        Some((verb, error)) => Err(observe::explained(error, verb, resource)),
        None => Ok(()),
    }
}
