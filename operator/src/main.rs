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

use cli::{Cli, Command, Local};

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Render(arguments) => render::run(&arguments),
        Command::Crds(arguments) => crds::run(&arguments),
        Command::Local(Local::Run(arguments)) => Ok(local_run::run(&arguments)),
    };
    done.unwrap_or_else(|failure| {
        anstream::eprintln!("training-operator: {failure}");
        exit::bad_input()
    })
}
