//! `training-operator`: the operator, and what can be asked of it without a cluster.
//!
//! A program and no library: nothing here is an interface but the program's command line.

mod check;
mod cli;
mod cluster;
mod crds;
mod diff;
mod exit;
mod explain;
mod finding;
#[doc(hidden)]
pub mod fuzzing;
mod kinds;
mod line_diff;
mod local_node;
mod local_run;
mod machine;
mod manifest;
mod manual;
mod render;
mod run;
mod signals;
mod snapshot;
mod table;
mod validate;
mod write;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use cli::{Cli, Command, Local};
use exit::Failure;

/// The program.
pub fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(arguments) => return run::run(&arguments),
        Command::Render(arguments) => render::run(&arguments),
        Command::Validate(arguments) => validate::run(&arguments),
        Command::Snapshot(arguments) => snapshot::run(&arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Crds(arguments) => crds::run(&arguments),
        Command::Completions(arguments) => manual::completions(&arguments),
        Command::Man(arguments) => manual::man(&arguments),
        Command::Local(Local::Run(arguments)) => run_locally(&arguments),
        Command::Local(Local::Node(arguments)) => run_to_end("local node", local_node::run(&arguments)),
    };
    done.unwrap_or_else(|failure| {
        anstream::eprintln!("training-operator: {failure}");
        exit::bad_input()
    })
}

/// Nothing is run if any job is wrong.
fn run_locally(arguments: &local_run::Args) -> Result<ExitCode, Failure> {
    let checked = check::check(&arguments.files);
    finding::print(&checked.findings);
    if !checked.is_good() {
        return Ok(exit::bad_input());
    }
    let mut jobs = local_run::jobs();
    for job in checked.jobs {
        jobs = jobs
            .job(&job.object)
            .map_err(|error| Failure::new("local run", error))?;
    }
    run_to_end("local run", local_run::run(arguments, jobs))
}

fn run_to_end(
    command: &str,
    work: impl Future<Output = anyhow::Result<ExitCode>>,
) -> Result<ExitCode, Failure> {
    // What the client says of each connection, the callers say too.
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn,kube_client=off"));
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_env_filter(filter)
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime
        .block_on(work)
        .map_err(|error| Failure::new(command, format!("{error:#}")))
}
