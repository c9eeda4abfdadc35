//! The whole command line of a program without commands of its own.

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use local_node::AdjustEnv;
use training_job::TrainingJob;
use training_job_program::{Program, program};

use crate::install::Install;
use crate::kinds::Kinds;

#[cfg(feature = "local")]
use crate::local::Local;
use crate::manual::Manual;
use crate::review::Review;
use crate::run::Run;
#[cfg(feature = "views")]
use crate::{History, Kubectl};
use training_job_review::exit;
use training_job_review::help;

/// A program that runs, reviews and installs kinds of job.
#[derive(Clone, Debug)]
pub struct Cli {
    program: Program,
    kinds: Kinds,
}

const HELP: &str = "\
Exit codes:
  0    success
  1    a job failed, or a check found errors, stale files or differences
  2    bad YAML or usage
  130  ended by Ctrl-C";

/// Run training jobs on Kubernetes, and check or preview them without a cluster.
#[derive(Parser)]
#[command(name = program().name.as_str(), after_help = help(HELP), arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the operator on a cluster.
    Run(Box<Run>),
    #[command(flatten)]
    Review(Review),
    /// Run pods as processes of this machine: jobs without a cluster, or the pods of a cluster.
    #[cfg(feature = "local")]
    #[command(subcommand)]
    Local(Local),
    #[command(flatten)]
    Install(Install),
    /// Print the stories of finished jobs that an operator keeps.
    #[cfg(feature = "views")]
    #[command(subcommand)]
    History(History),
    #[command(flatten)]
    Manual(Manual),
}

impl Cli {
    /// Creates the program of this name, such as `farm-operator`. It names the lease and the environment variables of
    /// flags as well, as [`Program::new`] documents.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            program: Program::new(name),
            kinds: Kinds::default(),
        }
    }

    /// Adds the kind of job `J`.
    #[must_use]
    pub fn kind<J: TrainingJob>(mut self) -> Self {
        self.kinds = self.kinds.kind::<J>();
        self
    }

    /// Adds the kind of job `J`, whose processes need other variables on one machine, as [`Kinds::kind_with`] does.
    #[must_use]
    pub fn kind_with<J: TrainingJob>(mut self, adjust_env: AdjustEnv) -> Self {
        self.kinds = self.kinds.kind_with::<J>(adjust_env);
        self
    }

    /// Sets what `--version` prints and the definitions have as a label, usually `env!("CARGO_PKG_VERSION")`. Default:
    /// the program has no such flag, and the definitions have no such label.
    #[must_use]
    pub fn version(mut self, version: &'static str) -> Self {
        self.program.version = Some(version);
        self
    }

    /// Runs the command of the process' arguments, and returns its exit code: 0 for success, 1 if a job failed or a
    /// check found something, 2 for bad input, and 130 after Ctrl-C.
    pub fn main(self) -> ExitCode {
        let Self { program, kinds } = self;
        let version = program.version;
        let program = program.kinds(&kinds.of_operator());
        #[cfg(feature = "views")]
        if Kubectl::is_called(std::env::args_os()) {
            return Kubectl::main(program, &kinds);
        }
        program.install();
        let command = || match version {
            Some(version) => Arguments::command().version(version),
            None => Arguments::command(),
        };
        let matches = command().get_matches();
        let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        exit::code(|| match arguments.command {
            Command::Run(run) => Ok(run.run(&kinds)),
            Command::Review(review) => review.run(&kinds),
            #[cfg(feature = "local")]
            Command::Local(local) => local.run(&kinds),
            Command::Install(install) => install.run(&kinds),
            #[cfg(feature = "views")]
            Command::History(history) => history.run(),
            Command::Manual(manual) => manual.run(command(), &kinds),
        })
    }
}
