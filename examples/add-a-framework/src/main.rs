//! An operator for FarmJobs.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use local_node::Jobs;
use training_job::process::{self, Flags, Kinds, Program};

use farm_operator::job::{self, FarmJob};

/// Runs FarmJobs.
#[derive(Parser)]
enum Command {
    /// Run the operator on a cluster.
    Run(Box<Flags>),
    /// Run the jobs of a manifest on this machine.
    Local { file: PathBuf },
    /// Print the custom resource definition.
    Crd,
}

fn main() -> ExitCode {
    Program::new("farm-operator").kind::<FarmJob>().install();
    match Command::parse() {
        Command::Run(flags) => process::main(&flags, Kinds::default().with::<FarmJob>()),
        Command::Local { file } => {
            local_node::main(&file, Jobs::default().kind_with::<FarmJob>(job::adjust_local))
        }
        Command::Crd => process::print_definition::<FarmJob>(),
    }
}
