//! `training-review`: the commands that review jobs, without a cluster.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use training_job_program::Program;
use training_job_review::{Review, exit, help};
use training_review::{convert, kinds, new_kind};

const HELP: &str = "\
Examples:
  {program} validate jobs/
  {program} render job.yaml --replica worker-0
  {program} diff origin/main:jobs jobs

Exit codes:
  0  success
  1  a check found errors, stale files or differences
  2  bad YAML or usage";

/// Check, preview and convert training jobs without a cluster, and begin a kind of your own.
#[derive(Debug, Parser)]
#[command(name = "training-review", version, after_help = help(HELP), arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Review(Review),
    /// Convert jobs of former versions and operators to the current API version.
    Convert(convert::Args),
    /// Write the package of an operator for a new kind of job.
    NewKind(new_kind::Args),
}

fn main() -> ExitCode {
    let kinds = kinds();
    let mut program = Program::new("training-review").kinds(&kinds.of_operator());
    program.version = Some(env!("CARGO_PKG_VERSION"));
    program.install();
    exit::code(|| match Cli::parse().command {
        Command::Review(review) => review.run(&kinds),
        Command::Convert(arguments) => convert::run(&arguments, &kinds),
        Command::NewKind(arguments) => new_kind::run(&arguments),
    })
}
