//! An operator for RayTrainJobs.

use std::process::ExitCode;

use ray_train_operator::RayTrainJob;
use training_job_cli::Cli;

fn main() -> ExitCode {
    Cli::new("ray-train-operator")
        .version(env!("CARGO_PKG_VERSION"))
        .kind::<RayTrainJob>()
        .main()
}
