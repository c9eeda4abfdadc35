//! An operator for RayTrainJobs.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use training_job_controller::DynKind;
use training_job_controller::process::{self, Flags, Install, Program};
use training_job_local::Jobs;

use ray_train_operator::RayTrainJob;

/// Runs RayTrainJobs, and prints what they need in a cluster.
#[derive(Parser)]
enum Command {
    /// Run the operator on a cluster.
    Run(Box<Flags>),
    /// Run the jobs of a manifest on this machine.
    Local { file: PathBuf },
    /// `crd`, `rbac` and `manifests`.
    #[command(flatten)]
    Install(Install),
}

fn main() -> ExitCode {
    let kinds = vec![DynKind::new::<RayTrainJob>()];
    Program::new("ray-train-operator").kinds(&kinds).install();
    match Command::parse() {
        Command::Run(flags) => process::main(&flags, kinds),
        Command::Local { file } => training_job_local::main(&file, Jobs::default().kind::<RayTrainJob>()),
        Command::Install(install) => install.print(&kinds),
    }
}
