//! What there is to say about a manifest.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use crate::manifest::Position;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The job cannot be run.
    Error,
    /// Only to be known.
    Note,
}

/// One thing to say, and of which place.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// How bad it is.
    pub(crate) severity: Severity,
    /// The file, as the command's arguments name it.
    pub(crate) file: String,
    /// Where in it, if it is about one place.
    pub(crate) at: Option<Position>,
    /// The field; empty if it is about no field.
    pub(crate) path: String,
    /// What.
    pub(crate) problem: String,
    /// What to do about it; may be empty.
    pub(crate) remedy: String,
}

impl Finding {
    /// One line: `file:line:column: field: problem; remedy`, with terminal styles.
    pub(crate) fn styled(&self) -> String {
        let (bold, note) = (Style::new().bold(), AnsiColor::Cyan.on_default());
        let mut line = format!("{bold}{}", printable(&self.file));
        if let Some(at) = self.at {
            // Writing to a string cannot fail.
            let _ = write!(line, ":{}:{}", at.line, at.column);
        }
        let _ = write!(line, ":{bold:#} ");
        if self.severity == Severity::Note {
            let _ = write!(line, "{note}note:{note:#} ");
        }
        if !self.path.is_empty() {
            let _ = write!(line, "{}: ", printable(&self.path));
        }
        line.push_str(&printable(&self.problem));
        if !self.remedy.is_empty() {
            let _ = write!(line, "; {}", printable(&self.remedy));
        }
        line
    }
}

/// What a file says must not reach the terminal as escape sequences.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Prints all on standard error, in colour if that is a terminal.
pub(crate) fn print(findings: &[Finding]) {
    for finding in findings {
        anstream::eprintln!("{}", finding.styled());
    }
}
