//! The training operator.
mod local_run;

use clap::Parser;
use std::process::ExitCode;

#[derive(Parser)]
enum Cli {
    Local {
        #[command(flatten)]
        args: local_run::Args,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into()),
        )
        .init();
    let Cli::Local { args } = Cli::parse();
    let text = std::fs::read_to_string(&args.files[0]).unwrap_or_default();
    let job: training_job_mxnet::MXJob = match serde_saphyr::from_str(&text) {
        Ok(j) => j,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::from(2);
        }
    };
    match local_run::run(&args, vec![job]).await {
        Ok(code) => code,
        Err(e) => {
            eprintln!("training-operator: {e:#}");
            ExitCode::from(2)
        }
    }
}
