//! The training operator.
mod local_run;

use clap::Parser;
use std::process::ExitCode;

#[derive(Parser)]
enum Cli {
    #[command(subcommand)]
    Local(Local),
}

#[derive(clap::Subcommand)]
enum Local {
    Run(local_run::Args),
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into()),
        )
        .init();
    let Cli::Local(Local::Run(args)) = Cli::parse();
    let mut jobs: Vec<training_job_mxnet::MXJob> = Vec::new();
    for file in &args.files {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        match serde_saphyr::from_str(&text) {
            Ok(job) => jobs.push(job),
            Err(e) => {
                eprintln!("{e}");
                return ExitCode::from(2);
            }
        }
    }
    match local_run::run(&args, jobs).await {
        Ok(code) => code,
        Err(e) => {
            eprintln!("training-operator: {e:#}");
            ExitCode::from(2)
        }
    }
}
