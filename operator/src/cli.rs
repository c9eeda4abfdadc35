//! The command line.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
#[cfg(feature = "cluster")]
use training_job_cli::History;
#[cfg(all(feature = "local", feature = "cluster"))]
use training_job_cli::Kubectl;
#[cfg(feature = "local")]
use training_job_cli::Local;
use training_job_cli::{Install, Kinds, Manual, Review, exit};
use training_job_controller::process::Program;

use crate::installation::OPTIONAL_KINDS;
use crate::kinds::kinds;
#[cfg(feature = "cluster")]
use crate::remote_shell;
use crate::{run, smoke_test};
use training_job_cli::help;
use training_review::{convert, new_kind};

/// The name of the Lease for leader election. It is the Go operator's, so that the two never reconcile jobs at the same
/// time.
const LEASE: &str = "1ca428e5.training-operator.kubeflow.org";

/// The namespace of the manifests' overlays.
const NAMESPACE: &str = "kubeflow";

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

/// Returns the help without the examples of commands that this program lacks.
fn after_help() -> String {
    let lines = HELP.lines();
    let lines = lines.filter(|line| cfg!(feature = "local") || !line.contains("training-operator local"));
    help(&lines.collect::<Vec<_>>().join("\n"))
}

/// Run training jobs on Kubernetes, and check or preview them without a cluster.
#[derive(Debug, Parser)]
#[command(name = "training-operator", version, after_help = after_help(), arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the operator on a cluster.
    Run(Box<run::Args>),
    #[command(flatten)]
    Review(Review),
    /// Run pods as processes of this machine: jobs without a cluster, or the pods of a cluster.
    #[cfg(feature = "local")]
    #[command(subcommand)]
    Local(Local),
    /// Convert jobs of former versions and operators to the current API version.
    Convert(convert::Args),
    #[command(flatten)]
    Install(Install),
    /// Print the stories of finished jobs that an operator keeps.
    #[cfg(feature = "cluster")]
    #[command(subcommand)]
    History(History),
    /// Run a job in a cluster, wait until it ends, and delete it.
    SmokeTest(smoke_test::Args),
    #[command(flatten)]
    Manual(Manual),
    /// Write the package of an operator for a new kind of job.
    NewKind(new_kind::Args),
    /// Run commands in other pods; mpirun calls this in the launcher of an MPIJob.
    #[cfg(feature = "cluster")]
    #[command(subcommand)]
    RemoteShell(remote_shell::Command),
}

/// Returns this program, for its help texts and its lease.
pub(crate) fn program(kinds: &Kinds) -> Program {
    let mut program = Program::new("training-operator").kinds(&kinds.of_operator());
    program.version = Some(env!("CARGO_PKG_VERSION"));
    LEASE.clone_into(&mut program.lease);
    NAMESPACE.clone_into(&mut program.namespace);
    program.optional_kinds = &OPTIONAL_KINDS;
    program
}

/// Runs the command of the process' arguments.
pub(crate) fn main() -> ExitCode {
    let kinds = kinds();
    #[cfg(all(feature = "local", feature = "cluster"))]
    if Kubectl::is_called(std::env::args_os()) {
        return Kubectl::main(program(&kinds), &kinds);
    }
    program(&kinds).install();
    exit::code(|| match Cli::parse().command {
        Command::Run(arguments) => Ok(run::run(&arguments, &kinds)),
        Command::Review(review) => review.run(&kinds),
        #[cfg(feature = "local")]
        Command::Local(local) => local.run(&kinds),
        Command::Convert(arguments) => convert::run(&arguments, &kinds),
        Command::Install(install) => install.run(&kinds),
        #[cfg(feature = "cluster")]
        Command::History(history) => history.run(),
        Command::SmokeTest(arguments) => smoke_test::run(&arguments, &kinds),
        Command::Manual(manual) => manual.run(Cli::command(), &kinds),
        Command::NewKind(arguments) => new_kind::run(&arguments),
        #[cfg(feature = "cluster")]
        Command::RemoteShell(command) => remote_shell::run(&command),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        program(&kinds()).install();
        Cli::command().debug_assert();
    }
}
