//! `validate`.

mod github;
mod junit;
pub(crate) mod sarif;

use std::path::PathBuf;
use std::process::ExitCode;

use globset::{Glob, GlobSet, GlobSetBuilder};
use kube_manifest::{Finding, Severity};
use serde_json::{Value, json};

use crate::check::{Checked, check_all_except};
use crate::exit::{self, Failure};
use crate::help::help;
use crate::kinds::Kinds;
use crate::{report, write};

const HELP: &str = "\
The checks are those of the operator and of the custom resource definitions. A warning marks a job
that is valid but almost certainly does not do what its author intends.

In a directory, files without a job are skipped and counted. Templates, and patches of a kustomization, are
skipped with a note. Names that begin with a dot are skipped. Jobs within other objects, such as an Experiment or a
ConfigMap, are checked except for their placeholders.

Examples:
  {program} validate jobs/
  kustomize build overlays/prod | {program} validate -
  {program} validate . --exclude 'charts/**' --strict --output github
  {program} validate jobs/ --output sarif > validate.sarif

Exit codes:
  0  no errors; without --strict there may be warnings
  1  errors, including bad YAML; with --strict also warnings
  2  a file cannot be read, or bad usage";

/// Check jobs for errors and likely mistakes.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub struct Args {
    /// Files, directories (with all *.yaml, *.yml and *.json files below them), or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Skip these files of directories: a path with *, ** and ?, such as 'charts/**'; may be repeated.
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<Glob>,
    /// Fail if there are warnings.
    #[arg(long)]
    strict: bool,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// One line per finding: file:line:column: field: problem; remedy.
    Text,
    /// One JSON object.
    Json,
    /// Workflow commands of GitHub Actions.
    Github,
    /// JUnit XML: a test case for each file.
    Junit,
    /// SARIF 2.1.0, which code hosts display beside the lines.
    Sarif,
}

/// Prints the findings of files.
pub fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let excluded = globs(&arguments.exclude)?;
    let checked = check_all_except(kinds, &arguments.files, |file| excluded.is_match(file));
    match arguments.output {
        Format::Text => print_text(&checked)?,
        Format::Github => write::print(&github::lines(&checked.findings))?,
        Format::Junit => {
            let files = checked.jobs.iter().map(|job| job.file.as_str());
            write::print(&junit::suite(files, &checked.findings, arguments.strict))?;
        }
        Format::Json => write::print_json(&json(&checked))?,
        Format::Sarif => write::print_json(&sarif::log(&checked.findings))?,
    }
    Ok(if checked.is_unreadable {
        exit::bad_input()
    } else if !checked.is_valid() || arguments.strict && checked.has_warnings() {
        exit::check_failed()
    } else {
        ExitCode::SUCCESS
    })
}

/// Returns what matches one of the patterns, at the start of a path or after a directory.
fn globs(patterns: &[Glob]) -> Result<GlobSet, Failure> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(pattern.clone());
        let anywhere = Glob::new(&format!("**/{}", pattern.glob()));
        set.add(anywhere.map_err(|error| Failure::new("--exclude", error))?);
    }
    set.build().map_err(|error| Failure::new("--exclude", error))
}

fn print_text(checked: &Checked) -> Result<(), Failure> {
    let mut text: String = checked
        .findings
        .iter()
        .map(|f| report::styled(f) + "\n")
        .collect();
    let count = |severity| checked.findings.iter().filter(|f| f.severity == severity).count();
    let counted = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    text += &format!(
        "{}, {}, {}\n",
        counted(checked.jobs.len() + checked.embedded_jobs, "valid job"),
        counted(count(Severity::Error), "error"),
        counted(count(Severity::Warning), "warning"),
    );
    Ok(write::print_styled(&text)?)
}

pub(crate) fn json(checked: &Checked) -> Value {
    let findings: Vec<_> = checked.findings.iter().map(finding).collect();
    let count = |severity| checked.findings.iter().filter(|f| f.severity == severity).count();
    json!({
        "goodJobs": checked.jobs.len() + checked.embedded_jobs,
        "errors": count(Severity::Error),
        "warnings": count(Severity::Warning),
        "findings": findings,
    })
}

fn finding(finding: &Finding) -> Value {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    json!({
        "severity": finding.severity.word(),
        "file": finding.file,
        "line": finding.at.map(|at| at.line),
        "column": finding.at.map(|at| at.column),
        "field": text(&finding.path),
        "problem": finding.problem,
        "remedy": text(&finding.remedy),
    })
}
