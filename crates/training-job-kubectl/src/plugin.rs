//! `kubectl training`: the program as a plugin of kubectl.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{Args as _, Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use training_job_program::Program;
use training_job_review::{Failure, Kinds, exit, write};

use crate::connection::ConnectionArgs;
use crate::{NAME, change, complete, events, explain, help, list, logs, report, status, ui, wait};

/// The name by which kubectl finds the plugin.
const PLUGIN: &str = "kubectl-training";

/// The name by which kubectl finds the program that completes the plugin's words.
const COMPLETE: &str = "kubectl_complete-training";

const HELP: &str = "\
A job is named NAME or KIND/NAME. A NAME that several kinds have is an error that lists them.

Examples:
  {program} list -A
  {program} status train
  {program} logs pytorchjob/train -n ml -f
  {program} wait train --for succeeded && {program} status train

Words are completed by kubectl's completion if a link kubectl_complete-training to this program is in PATH.

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
    Events(events::Args),
    Report(report::Args),
    Explain(explain::Args),
    Ui(ui::Args),
    Wait(wait::Args),
    Suspend(change::SuspendArgs),
    Resume(change::ResumeArgs),
    Restart(change::RestartArgs),
    Scale(change::ScaleArgs),
}

impl Verb {
    fn run(&self, kinds: &Kinds) -> Result<ExitCode, Failure> {
        match self {
            Self::List(arguments) => list::run(arguments, kinds),
            Self::Status(arguments) => status::run(arguments, kinds),
            Self::Logs(arguments) => logs::run(arguments, kinds),
            Self::Events(arguments) => events::run(arguments, kinds),
            Self::Report(arguments) => report::run(arguments, kinds),
            Self::Explain(arguments) => explain::run(arguments, kinds),
            Self::Ui(arguments) => ui::run(arguments, kinds),
            Self::Wait(arguments) => wait::run(arguments, kinds),
            Self::Suspend(arguments) => change::suspend(arguments, kinds),
            Self::Resume(arguments) => change::resume(arguments, kinds),
            Self::Restart(arguments) => change::restart(arguments, kinds),
            Self::Scale(arguments) => change::scale(arguments, kinds),
        }
    }
}

/// The kubectl plugin `training`: the program under the name `kubectl-training`.
#[derive(Debug)]
pub struct Kubectl;

impl Kubectl {
    /// Returns true if the program was called as the plugin: the file name of its first argument is
    /// `kubectl-training`, or that of the program that completes the plugin's words, `kubectl_complete-training`.
    pub fn is_called(arguments: impl IntoIterator<Item = OsString>) -> bool {
        matches!(name_of(arguments).as_deref(), Some(PLUGIN | COMPLETE))
    }

    /// Returns the command line.
    pub fn command(version: Option<&'static str>) -> Command {
        // Flags that select a cluster may be before the verb, as with kubectl.
        let global = ConnectionArgs::augment_args(Arguments::command());
        let command = global.mut_args(|arg| arg.global(true));
        match version {
            Some(version) => command.version(version),
            None => command,
        }
    }

    /// Runs the command of the process' arguments and returns its exit code. `program` is the program under its own
    /// name.
    pub fn main(mut program: Program, kinds: &Kinds) -> ExitCode {
        NAME.clone_into(&mut program.name);
        let version = program.version;
        program.install();
        let mut command = Self::command(version);
        if let Some(words) = words_to_complete() {
            command.build();
            return exit::code(|| {
                write::print(&complete::complete(&words, &command, kinds))?;
                Ok(ExitCode::SUCCESS)
            });
        }
        let arguments = Arguments::from_arg_matches(&command.get_matches());
        let arguments = arguments.unwrap_or_else(|error| error.exit());
        exit::code(|| arguments.verb.run(kinds))
    }
}

/// Returns the words to complete if kubectl requests completions. The last word may be empty.
fn words_to_complete() -> Option<Vec<String>> {
    let words = std::env::args_os().skip(1);
    let mut words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    if name_of(std::env::args_os()).as_deref() == Some(COMPLETE) {
        return Some(words);
    }
    (words.first()? == "__complete").then(|| words.split_off(1))
}

/// Returns the file name of the first argument, without the ending `.exe`.
fn name_of(arguments: impl IntoIterator<Item = OsString>) -> Option<String> {
    let program = arguments.into_iter().next()?;
    let name = Path::new(&program).file_name()?.to_str()?;
    Some(name.strip_suffix(".exe").unwrap_or(name).to_owned())
}
