//! `doctor`: finds problems of an installation, and names a remedy for each.

mod copies;
mod definitions;
mod deployments;
mod diagnosis;
mod overview;
mod read;

pub use diagnosis::{finding, findings, list_names};
pub use overview::{Observation, observations};

use std::path::PathBuf;
use std::process::ExitCode;

use anstyle::Style;
use kube_manifest::{Finding, Severity};
use serde_json::{Value, json};
use training_job_client::call_error::failure_of;
use training_job_client::cluster;
use training_job_controller::process::ClusterFlags;

use crate::kinds::Kinds;
use training_job_review::help;
use training_job_review::{Failure, exit};
use training_job_review::{report, write};

const HELP: &str = "\
Lists the API server's version, the current definitions, the operators with their ready pods, the holder of the lease
and the number of jobs. Finds definitions that older operators left behind, webhooks without a service, jobs whose meaning depends on their
former operator, jobs that wait for more than 10 minutes, operators that run side by side or are not ready, missing permissions of the operator, and an API server that is too
old. The cluster is not changed: permissions are checked by SubjectAccessReviews. Resources that cannot be read are
reported.

Examples:
  {program} doctor
  {program} doctor --context staging --output json

Exit codes:
  0  no errors and no warnings; there may be notes
  1  errors or warnings
  2  the cluster cannot be reached, or bad usage";

/// Check a cluster for problems with its operators, definitions, permissions and jobs.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub struct Args {
    /// The kubeconfig file [default: KUBECONFIG, ~/.kube/config, or the service account of a pod].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: its current context].
    #[arg(long)]
    context: Option<String>,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// One line per part of the installation, then one per finding: object: severity: problem; remedy.
    Text,
    /// One JSON object.
    Json,
}

/// Reports the problems of a cluster.
pub(crate) fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let look = async {
        let flags = ClusterFlags::new(arguments.kubeconfig.as_deref(), arguments.context.as_deref());
        read::cluster(&cluster::client(&flags).await?.0, kinds).await
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let state = runtime
        .block_on(look)
        .map_err(|error| failure_of("doctor", &error))?;
    let observations = observations(&state, kinds);
    let findings = findings(&state, kinds);
    match arguments.output {
        Format::Text => write::print_styled(&text(&observations, &findings))?,
        Format::Json => write::print_json(&json(&observations, &findings))?,
    }
    let is_well = findings.iter().all(|f| f.severity == Severity::Note);
    Ok(if is_well {
        ExitCode::SUCCESS
    } else {
        exit::check_failed()
    })
}

/// Returns a line for each part of the installation and for each finding, and the numbers of errors and warnings, with
/// terminal styles.
pub fn text(observations: &[Observation], findings: &[Finding]) -> String {
    let observed = observations.iter().map(styled);
    let lines = observed.chain(findings.iter().map(report::labeled));
    let lines = lines.map(|line| line + "\n");
    let count = |severity| findings.iter().filter(|f| f.severity == severity).count();
    let [errors, warnings] = [Severity::Error, Severity::Warning].map(count);
    lines.collect::<String>() + &format!("errors: {errors}, warnings: {warnings}\n")
}

/// Returns one line with terminal styles: `object: state`.
fn styled(observation: &Observation) -> String {
    let bold = Style::new().bold();
    let Observation { object, state } = observation;
    format!("{bold}{object}:{bold:#} {state}")
}

fn json(observations: &[Observation], findings: &[Finding]) -> Value {
    let observed = |one: &Observation| json!({"object": one.object, "state": one.state});
    let one = |finding: &Finding| {
        json!({
            "severity": finding.severity.word(),
            "object": finding.file,
            "problem": finding.problem,
            "remedy": finding.remedy,
        })
    };
    json!({
        "observations": observations.iter().map(observed).collect::<Vec<_>>(),
        "findings": findings.iter().map(one).collect::<Vec<_>>(),
    })
}
