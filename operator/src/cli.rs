//! The command line.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use training_job_controller::process::Program;

use crate::kinds::kinds;
use crate::lease::LEASE;
use crate::{
    convert, crds, diff, doctor, exit, explain, local, manual, remote_shell, render, run, snapshot, validate,
};

const HELP: &str = "\
Examples:
  training-operator validate jobs/
  training-operator render job.yaml --replica worker-0
  training-operator diff origin/main:jobs jobs
  training-operator local run job.yaml
  training-operator local node --kubeconfig ~/.kube/config --venv .venv/mxnet
  training-operator run --leader-elect

Exit codes:
  0    success
  1    a job failed, or a check found errors, stale files or differences
  2    bad YAML or usage
  130  ended by Ctrl-C";

/// Run training jobs on Kubernetes, and check or preview them without a cluster.
#[derive(Debug, Parser)]
#[command(name = "training-operator", version, after_help = HELP, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the operator on a cluster.
    Run(Box<run::Args>),
    /// Print the pods, services and other objects of jobs.
    Render(render::Args),
    /// Check jobs for errors and likely mistakes.
    Validate(validate::Args),
    /// Write the objects of jobs to files for review.
    Snapshot(snapshot::Args),
    /// Show how the objects of jobs change.
    Diff(diff::Args),
    /// Convert jobs of former versions and operators to the current API version.
    Convert(convert::Args),
    /// Check a cluster for problems with its operators, definitions, permissions and jobs.
    Doctor(doctor::Args),
    /// Describe how a job starts, succeeds, and reacts to each kind of failure.
    Explain(explain::Args),
    /// Print the custom resource definitions.
    Crds(crds::Args),
    /// Print a completion script for a shell.
    Completions(manual::Completions),
    /// Print the manual page.
    Man(manual::Man),
    /// Run pods as processes of this machine: jobs without a cluster, or the pods of a cluster.
    #[command(subcommand)]
    Local(local::Command),
    /// Run commands in other pods; mpirun calls this in the launcher of an MPIJob.
    #[command(subcommand)]
    RemoteShell(remote_shell::Command),
}

/// Runs the command of the process' arguments.
pub(crate) fn main() -> ExitCode {
    let program = Program {
        lease: LEASE.to_owned(),
        ..Program::new("training-operator")
    };
    program.kinds(kinds().iter().map(|kind| &kind.dyn_kind)).install();
    let result = match Cli::parse().command {
        Command::Run(arguments) => return run::run(&arguments),
        Command::Render(arguments) => render::run(&arguments),
        Command::Validate(arguments) => validate::run(&arguments),
        Command::Snapshot(arguments) => snapshot::run(&arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Convert(arguments) => convert::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Crds(arguments) => crds::run(&arguments),
        Command::Completions(arguments) => manual::completions(&arguments, Cli::command()),
        Command::Man(arguments) => manual::man(&arguments, Cli::command()),
        Command::Local(command) => local::run(&command),
        Command::RemoteShell(command) => remote_shell::run(&command),
    };
    result.unwrap_or_else(|failure| {
        anstream::eprintln!("training-operator: {failure}");
        exit::bad_input()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
