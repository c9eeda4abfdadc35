//! Prints findings on the terminal.

use anstyle::{AnsiColor, Style};
use kube_manifest::{Finding, Severity};

/// Returns one line with terminal styles: `file:line:column: field: problem; remedy`.
pub fn styled(finding: &Finding) -> String {
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

/// Prints a line on standard error, without its styles if that is no terminal, or one that has none. anstream alone writes
/// styles to a dumb terminal where the variable CI is set.
fn print_line(text: &str) {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    match is_dumb {
        true => eprintln!("{}", anstream::adapter::strip_str(text)),
        false => anstream::eprintln!("{text}"),
    }
}

/// Prints all findings on standard error, in color if it is a terminal.
pub fn print_all(findings: &[Finding]) {
    for finding in findings {
        print_line(&styled(finding));
    }
}

/// Prints errors and notes on standard error, in color if it is a terminal. Only `validate` prints warnings, because
/// they would bury the output of other commands.
pub fn print(findings: &[Finding]) {
    for finding in findings.iter().filter(|f| f.severity != Severity::Warning) {
        print_line(&styled(finding));
    }
}

/// Prints a note that concerns no file on standard error.
pub fn note(text: &str) {
    let cyan = AnsiColor::Cyan.on_default();
    print_line(&format!("{cyan}note:{cyan:#} {text}"));
}
