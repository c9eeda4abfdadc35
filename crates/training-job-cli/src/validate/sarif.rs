//! Writes findings as SARIF 2.1.0.

use kube_manifest::{Finding, Severity};
use serde_json::{Value, json};
use training_job_controller::process::program;

/// Returns a log of one run.
pub(crate) fn log(findings: &[Finding]) -> Value {
    let rule = |severity: Severity, text: &str| {
        json!({
            "id": rule_id(severity),
            "shortDescription": {"text": text},
            "defaultConfiguration": {"level": severity.word()},
        })
    };
    let rules = [
        rule(Severity::Error, "The operator rejects the job"),
        rule(
            Severity::Warning,
            "The job is valid, but does not do what its author intends",
        ),
        rule(Severity::Note, "The object is not a training job"),
    ];
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": program().name,
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": findings.iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

fn rule_id(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "invalid",
        Severity::Warning => "not-meant",
        Severity::Note => "passed-by",
    }
}

fn result(finding: &Finding) -> Value {
    let mut text = finding.problem.clone();
    if !finding.path.is_empty() {
        text = format!("{}: {text}", finding.path);
    }
    if !finding.remedy.is_empty() {
        text = format!("{text}; {}", finding.remedy);
    }
    let mut location = json!({"physicalLocation": {"artifactLocation": {"uri": uri(&finding.file)}}});
    if let Some(at) = finding.at {
        let region = json!({"startLine": at.line, "startColumn": at.column});
        location["physicalLocation"]["region"] = region;
    }
    if !finding.path.is_empty() {
        location["logicalLocations"] = json!([{"fullyQualifiedName": finding.path, "kind": "member"}]);
    }
    json!({
        "ruleId": rule_id(finding.severity),
        "level": finding.severity.word(),
        "message": {"text": text},
        "locations": [location],
    })
}

/// Returns a file's name as a relative URI, or as an absolute URI with the scheme `file`.
fn uri(file: &str) -> String {
    let mut uri = String::new();
    for byte in file.bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => uri.push(byte.into()),
            byte if byte.is_ascii_alphanumeric() => uri.push(byte.into()),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    match uri.strip_prefix("./") {
        Some(relative) => relative.to_owned(),
        None if uri.starts_with('/') => format!("file://{uri}"),
        None => uri,
    }
}
