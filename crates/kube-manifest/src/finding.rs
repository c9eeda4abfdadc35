//! Something to say about a place in a manifest.

use std::fmt;

use crate::{Node, Position, SyntaxError};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The object cannot be used.
    Error,
    /// The object can be used, and will not do what its author wants.
    Warning,
    /// Worth knowing, and nothing to change.
    Note,
}

impl Severity {
    /// Its word in reports: `error`, `warning`, `note`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// Something to say about a place in a manifest.
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
///     problem: "-1 is negative".to_owned(),
///     remedy: "use 0 or more".to_owned(),
/// };
/// assert_eq!(finding.to_string(), "job.yaml:5:3: spec.replicas: -1 is negative; use 0 or more");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The file's name, as the user gave it.
    pub file: String,
    /// Where in the file, if the finding is about one place.
    pub at: Option<Position>,
    /// The path of the field; empty if the finding is about no field.
    pub path: String,
    /// What is wrong.
    pub problem: String,
    /// What to do about it; may be empty.
    pub remedy: String,
}

impl Finding {
    /// The finding that `file` is no YAML.
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

    /// Findings about fields of `document`, which is in `file`. Each error is a path, a problem and a remedy. They come in
    /// the order of their places; what is missing has the place of what it is missing from.
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

    /// Its place, `file:line:column`, or `file` alone.
    pub fn place(&self) -> String {
        let file = printable(&self.file);
        match self.at {
            Some(at) => format!("{file}:{}:{}", at.line, at.column),
            None => file,
        }
    }

    /// What it says: `field: problem; remedy`, without what is empty.
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
    /// `file:line:column: field: problem; remedy`. Before the field of a warning or a note stands the severity's word.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place())?;
        if self.severity != Severity::Error {
            write!(f, "{}: ", self.severity.word())?;
        }
        f.write_str(&self.message())
    }
}

/// The text with its control characters escaped.
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
