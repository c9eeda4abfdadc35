//! `training-operator validate`.

pub(crate) mod sarif;

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::check::{Checked, check};
use crate::cli::{ReportFormat, Validate};
use crate::exit::{self, Failure};
use crate::finding::{Finding, Severity};
use crate::write;

/// Tells what is wrong with jobs.
pub(crate) fn run(arguments: &Validate) -> Result<ExitCode, Failure> {
    let checked = check(&arguments.files);
    match arguments.output {
        ReportFormat::Text => print_text(&checked)?,
        ReportFormat::Json => print_json(&json(&checked))?,
        ReportFormat::Sarif => print_json(&sarif::log(&checked.findings))?,
    }
    Ok(if checked.is_unreadable {
        exit::bad_input()
    } else if checked.is_good() {
        ExitCode::SUCCESS
    } else {
        exit::found()
    })
}

fn print_text(checked: &Checked) -> Result<(), Failure> {
    let mut text: String = checked.findings.iter().map(|f| f.styled() + "\n").collect();
    let count = |severity| checked.findings.iter().filter(|f| f.severity == severity).count();
    let counted = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    text += &format!(
        "{}, {}, {}\n",
        counted(checked.jobs.len(), "good job"),
        counted(count(Severity::Error), "error"),
        counted(count(Severity::Warning), "warning"),
    );
    Ok(write::print_styled(&text)?)
}

fn print_json(value: &Value) -> Result<(), Failure> {
    let text = write::json(value).map_err(|error| Failure::new("output", error))?;
    Ok(write::print(&text)?)
}

pub(crate) fn json(checked: &Checked) -> Value {
    let findings: Vec<_> = checked.findings.iter().map(finding).collect();
    json!({"goodJobs": checked.jobs.len(), "findings": findings})
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
