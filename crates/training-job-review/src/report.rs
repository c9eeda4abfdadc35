//! Prints findings on the terminal.

use anstyle::{AnsiColor, Style};
use kube_manifest::{Finding, Severity};

/// Returns one line with terminal styles: `file:line:column: field: problem; remedy`.
pub fn styled(finding: &Finding) -> String {
    let bold = Style::new().bold();
    match finding.severity {
        Severity::Error => format!("{bold}{}:{bold:#} {}", finding.place(), finding.message()),
        Severity::Warning | Severity::Note => labeled(finding),
    }
}

/// Returns one line with terminal styles: `object: severity: problem; remedy`.
pub fn labeled(finding: &Finding) -> String {
    let bold = Style::new().bold();
    let severity = match finding.severity {
        Severity::Error => AnsiColor::Red.on_default(),
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

/// Prints all findings on standard error, in color if it is a terminal.
pub fn print_all(findings: &[Finding]) {
    for finding in findings {
        anstream::eprintln!("{}", styled(finding));
    }
}

/// Prints errors and notes on standard error, in color if it is a terminal. Only `validate` prints warnings, because
/// they would bury the output of other commands.
pub fn print(findings: &[Finding]) {
    for finding in findings.iter().filter(|f| f.severity != Severity::Warning) {
        anstream::eprintln!("{}", styled(finding));
    }
}

/// Prints a warning that concerns no file on standard error.
pub fn warning(text: &str) {
    let yellow = AnsiColor::Yellow.on_default();
    anstream::eprintln!("{yellow}warning:{yellow:#} {text}");
}

/// Prints a note that concerns no file on standard error.
pub fn note(text: &str) {
    let cyan = AnsiColor::Cyan.on_default();
    anstream::eprintln!("{cyan}note:{cyan:#} {text}");
}
