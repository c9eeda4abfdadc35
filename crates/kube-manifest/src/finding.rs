//! Findings about places in a manifest.

use std::fmt;

use crate::look_alike::is_invisible;
use crate::{Node, Position, SyntaxError};

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The object cannot be used.
    Error,
    /// The object can be used, but probably does not do what its author intends.
    Warning,
    /// Information; no change is needed.
    Note,
}

impl Severity {
    /// Returns the severity's word in reports: `error`, `warning`, `note`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A finding about a place in a manifest.
///
/// It is displayed as one line, in the form that editors and CI turn into a link. Control characters are escaped, so
/// that a file cannot write to the terminal.
///
/// ```
/// use kube_manifest::{Finding, Position, Severity};
///
/// let finding = Finding {
///     severity: Severity::Error,
///     file: "job.yaml".to_owned(),
///     at: Some(Position { line: 5, column: 3 }),
///     path: "spec.replicas".to_owned(),
///     problem: "must be at least 0 (is -1)".to_owned(),
///     remedy: "use 0 for none".to_owned(),
/// };
/// assert_eq!(finding.to_string(), "job.yaml:5:3: spec.replicas: must be at least 0 (is -1); use 0 for none");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The severity.
    pub severity: Severity,
    /// The file's name, as the user gave it.
    pub file: String,
    /// The place in the file; `None` if the finding is about the whole file.
    pub at: Option<Position>,
    /// The path of the field; empty if the finding is not about a field.
    pub path: String,
    /// The problem.
    pub problem: String,
    /// The remedy; may be empty.
    pub remedy: String,
}

impl Finding {
    /// Returns the finding for a syntax error in `file`.
    pub fn from_syntax_error(file: &str, error: &SyntaxError) -> Self {
        Self {
            severity: Severity::Error,
            file: file.to_owned(),
            at: Some(error.at),
            path: String::new(),
            problem: error.problem.clone(),
            remedy: error.remedy.to_owned(),
        }
    }

    /// Returns findings about fields of `document`, which is in `file`. Each error is a path, a problem and a remedy.
    /// The findings are ordered by place. A missing field has the place of the nearest existing field around it.
    pub fn locate(
        file: &str,
        severity: Severity,
        document: &Node,
        errors: impl IntoIterator<Item = (String, String, String)>,
    ) -> Vec<Self> {
        let positions = document.positions();
        let mut findings: Vec<_> = errors
            .into_iter()
            .map(|(path, problem, remedy)| Self {
                severity,
                file: file.to_owned(),
                at: Some(positions.nearest(&path)),
                path,
                problem,
                remedy,
            })
            .collect();
        findings.sort_by_key(|finding| finding.at);
        findings
    }

    /// Returns the place as `file:line:column`, or as `file` alone.
    pub fn place(&self) -> String {
        let file = printable(&self.file);
        match self.at {
            Some(at) => format!("{file}:{}:{}", at.line, at.column),
            None => file,
        }
    }

    /// Returns `field: problem; remedy`, without the empty parts.
    pub fn message(&self) -> String {
        let mut text = String::new();
        if !self.path.is_empty() {
            text += &printable(&self.path);
            text += ": ";
        }
        text += &printable(&self.problem);
        if !self.remedy.is_empty() {
            text += "; ";
            text += &printable(&self.remedy);
        }
        text
    }
}

impl fmt::Display for Finding {
    /// Writes `file:line:column: field: problem; remedy`. For a warning or a note, the severity's word stands before
    /// the field.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place())?;
        if self.severity != Severity::Error {
            write!(f, "{}: ", self.severity.word())?;
        }
        f.write_str(&self.message())
    }
}

/// Returns the text with its control characters and invisible characters escaped.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_invisible(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line_without_control_characters() {
        let finding = Finding {
            severity: Severity::Warning,
            file: "a\u{1b}[31m".to_owned(),
            at: None,
            path: String::new(),
            problem: "two\nlines".to_owned(),
            remedy: String::new(),
        };
        assert_eq!(finding.to_string(), "a\\u{1b}[31m: warning: two\\nlines");
    }
}
