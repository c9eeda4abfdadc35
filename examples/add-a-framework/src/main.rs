//! An operator for FarmJobs.

use std::process::ExitCode;

use farm_operator::job::{self, FarmJob};
use training_job_cli::Cli;

fn main() -> ExitCode {
    Cli::new("farm-operator")
        .version(env!("CARGO_PKG_VERSION"))
        .kind_with::<FarmJob>(job::adjust_local)
        .main()
}
