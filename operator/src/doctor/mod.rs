//! `training-operator doctor`: what is wrong with a cluster's installation, and what to do about it.

mod copies;
mod diagnosis;
mod read;
mod seen;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::process::ExitCode;

use kube_manifest::{Finding, Severity};
use serde_json::{Value, json};

use crate::exit::{self, Failure};
use crate::kinds::kinds;
use crate::{cluster, report, write};

const HELP: &str = "\
It looks for definitions that older operators left, webhooks that nobody answers, jobs that mean something else than
they did, operators that work side by side, rights that the operator has not, and an API server that is too old. It
reads and changes nothing; what a service account may do it asks the API server. What it may not read it says.

Examples:
  training-operator doctor
  training-operator doctor --context staging --output json

Exit codes:
  0  nothing is found; there may be notes
  1  there are errors or warnings
  2  the cluster cannot be reached, or bad usage";

/// Look at a cluster, and tell what is wrong with its operators, definitions and jobs.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Where the cluster is. Without it: the cluster that the program runs in, or that KUBECONFIG names.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig.
    #[arg(long)]
    context: Option<String>,
    /// How to report.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// How to report findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// One line each: object: problem; remedy.
    Text,
    /// One JSON object.
    Json,
}

/// Tells what is wrong with a cluster.
pub(crate) fn run(arguments: &Args) -> Result<ExitCode, Failure> {
    let kinds = kinds();
    let look = async {
        let context = arguments.context.as_deref();
        let (client, server) = cluster::client(arguments.kubeconfig.as_deref(), context).await?;
        let seen = read::cluster(&client, &kinds).await;
        seen.map_err(|error| error.context(server))
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let seen = runtime
        .block_on(look)
        .map_err(|error| Failure::new("doctor", format!("{error:#}")))?;
    let findings = diagnosis::findings(&seen, &kinds);
    match arguments.output {
        Format::Text => write::print_styled(&text(&findings))?,
        Format::Json => {
            let text = write::json(&json(&findings)).map_err(|error| Failure::new("output", error))?;
            write::print(&text)?;
        }
    }
    let is_well = findings.iter().all(|f| f.severity == Severity::Note);
    Ok(if is_well { ExitCode::SUCCESS } else { exit::found() })
}

fn text(findings: &[Finding]) -> String {
    let lines = findings.iter().map(|finding| report::styled(finding) + "\n");
    let count = |severity| findings.iter().filter(|f| f.severity == severity).count();
    let [errors, warnings] = [Severity::Error, Severity::Warning].map(count);
    lines.collect::<String>() + &format!("errors: {errors}, warnings: {warnings}\n")
}

fn json(findings: &[Finding]) -> Value {
    let one = |finding: &Finding| {
        json!({
            "severity": finding.severity.word(),
            "object": finding.file,
            "problem": finding.problem,
            "remedy": finding.remedy,
        })
    };
    json!({"findings": findings.iter().map(one).collect::<Vec<_>>()})
}
