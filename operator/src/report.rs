//! Findings on the terminal.

use anstyle::{AnsiColor, Style};
use kube_manifest::{Finding, Severity};

/// One line: `file:line:column: field: problem; remedy`, with terminal styles.
pub(crate) fn styled(finding: &Finding) -> String {
    let bold = Style::new().bold();
    let severity = match finding.severity {
        Severity::Error => return format!("{bold}{}:{bold:#} {}", finding.place(), finding.message()),
        Severity::Warning => AnsiColor::Yellow.on_default(),
        Severity::Note => AnsiColor::Cyan.on_default(),
    };
    let word = finding.severity.word();
    format!(
        "{bold}{}:{bold:#} {severity}{word}:{severity:#} {}",
        finding.place(),
        finding.message()
    )
}

/// Prints all on standard error, in colour if that is a terminal.
pub(crate) fn print_all(findings: &[Finding]) {
    for finding in findings {
        anstream::eprintln!("{}", styled(finding));
    }
}

/// Prints errors and notes on standard error, in colour if that is a terminal. Warnings are left to `validate`: other
/// commands print something else, and the warnings would be in its way.
pub(crate) fn print(findings: &[Finding]) {
    for finding in findings.iter().filter(|f| f.severity != Severity::Warning) {
        anstream::eprintln!("{}", styled(finding));
    }
}
