//! What there is to say about a manifest.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use crate::manifest::Position;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The job cannot be run.
    Error,
    /// The job can be run, and will not do what its author wants.
    Warning,
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

impl Severity {
    /// Its word in reports.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

impl Finding {
    /// One line: `file:line:column: field: problem; remedy`, with terminal styles.
    pub(crate) fn styled(&self) -> String {
        let bold = Style::new().bold();
        let mut line = format!("{bold}{}", printable(&self.file));
        if let Some(at) = self.at {
            // Writing to a string cannot fail.
            let _ = write!(line, ":{}:{}", at.line, at.column);
        }
        let _ = write!(line, ":{bold:#} ");
        let mark = match self.severity {
            Severity::Error => None,
            Severity::Warning => Some(("warning", AnsiColor::Yellow)),
            Severity::Note => Some(("note", AnsiColor::Cyan)),
        };
        if let Some((word, colour)) = mark {
            let style = colour.on_default();
            let _ = write!(line, "{style}{word}:{style:#} ");
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

/// Prints on standard error what keeps jobs from being run and what is passed by, in colour if that is
/// a terminal. Warnings are for `validate` to tell: they would be in the way of everything else.
pub(crate) fn print(findings: &[Finding]) {
    for finding in findings.iter().filter(|f| f.severity != Severity::Warning) {
        anstream::eprintln!("{}", finding.styled());
    }
}
