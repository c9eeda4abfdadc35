//! Writes findings as JUnit XML, which most CI systems display.

use std::collections::BTreeMap;

use kube_manifest::{Finding, Severity};
use training_job_program::program;

/// Returns a test suite with a test case for each of these files and each file that has an error, or also for warnings
/// if these fail the check.
pub(super) fn suite<'a>(
    files: impl Iterator<Item = &'a str>,
    findings: &'a [Finding],
    strict: bool,
) -> String {
    let mut cases: BTreeMap<&str, Vec<&Finding>> = files.map(|file| (file, Vec::new())).collect();
    let fails = |finding: &&Finding| match finding.severity {
        Severity::Error => true,
        Severity::Warning => strict,
        Severity::Note => false,
    };
    for finding in findings.iter().filter(fails) {
        cases.entry(&finding.file).or_default().push(finding);
    }
    let failures = cases.values().filter(|findings| !findings.is_empty()).count();
    let (name, tests) = (escaped(&program().name), cases.len());
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites>\n\
         <testsuite name=\"{name} validate\" tests=\"{tests}\" failures=\"{failures}\">\n"
    );
    for (file, findings) in cases {
        text += &format!("<testcase classname=\"{name}\" name=\"{}\">", escaped(file));
        if let Some(first) = findings.first() {
            let lines: Vec<_> = findings
                .iter()
                .map(|f| format!("{}: {}", f.place(), f.message()))
                .collect();
            text += &format!(
                "\n<failure message=\"{}\">{}</failure>\n",
                escaped(&first.message()),
                escaped(&lines.join("\n"))
            );
        }
        text += "</testcase>\n";
    }
    text + "</testsuite>\n</testsuites>\n"
}

/// Returns the text for an XML attribute or element. Control characters, which XML does not have, become `?`.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\n' => escaped.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('?'),
            c => escaped.push(c),
        }
    }
    escaped
}
