//! `training-operator`: the operator, and what can be asked of it without a cluster.

mod check;
mod cli;
mod crds;
mod exit;
mod finding;
mod kinds;
mod local_run;
mod manifest;
mod render;
mod write;

use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use cli::{Cli, Command, Local};
use exit::Failure;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Render(arguments) => render::run(&arguments),
        Command::Crds(arguments) => crds::run(&arguments),
        Command::Local(Local::Run(arguments)) => run_locally(&arguments),
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
    let mut jobs = Vec::new();
    for job in checked.jobs {
        let object = (job.kind.normalize)(&job.object).and_then(serde_json::from_value);
        jobs.push(object.map_err(|error| Failure::new(&job.origin, error))?);
    }
    local_run::check_names(&jobs).map_err(|error| Failure::new("local run", error))?;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(filter)
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime
        .block_on(local_run::run(arguments, jobs))
        .map_err(|error| Failure::new("local run", format!("{error:#}")))
}
