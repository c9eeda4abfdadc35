//! Writes findings as SARIF 2.1.0.

use std::collections::BTreeMap;

use kube_manifest::{Finding, Severity};
use serde_json::{Value, json};
use training_job_program::program;

/// Returns a log of one run. Notes are left out, because a code host would show each as an alert.
pub(crate) fn log(findings: &[Finding]) -> Value {
    let shown: Vec<_> = findings.iter().filter(|f| f.severity != Severity::Note).collect();
    let rules: BTreeMap<_, _> = shown
        .iter()
        .map(|finding| (rule_id(finding), rule(finding)))
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": program().name,
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.into_values().collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": shown.into_iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

/// Returns the id of the rule of a finding, so that an alert can be dismissed for a field: its severity and its field,
/// without the positions in lists.
fn rule_id(finding: &Finding) -> String {
    let mut field = String::new();
    let mut depth = 0;
    for c in finding.path.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            c if depth == 0 => field.push(c),
            _ => {}
        }
    }
    match field.as_str() {
        "" => format!("{}/document", finding.severity.word()),
        field => format!("{}/{field}", finding.severity.word()),
    }
}

fn rule(finding: &Finding) -> Value {
    let text = match finding.severity {
        Severity::Error => "The operator rejects the job",
        _ => "The job is valid, but does not do what its author intends",
    };
    json!({
        "id": rule_id(finding),
        "shortDescription": {"text": text},
        "defaultConfiguration": {"level": finding.severity.word()},
    })
}

/// Returns a number of a finding that does not change when lines are added before it: FNV-1a of file, field and problem.
fn fingerprint(finding: &Finding) -> String {
    let parts = [&finding.file, &finding.path, &finding.problem];
    let bytes = parts.into_iter().flat_map(|part| part.bytes().chain([0]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
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
        "ruleId": rule_id(finding),
        "level": finding.severity.word(),
        "message": {"text": text},
        "locations": [location],
        "partialFingerprints": {"finding/v1": fingerprint(finding)},
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
