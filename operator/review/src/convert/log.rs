//! Collects the findings of a conversion.

use kube_manifest::{Finding, Position, Severity};
use training_job::validate::UNKNOWN_FIELD;

use super::Choices;

/// The findings of one document, and its position.
#[derive(Debug)]
pub(super) struct Log<'a> {
    file: &'a str,
    /// The number of lines before the document.
    lines: usize,
    /// The path of the job in the document, with a trailing dot. Empty if the job is the whole document.
    pub(super) prefix: String,
    pub(super) choices: Choices,
    /// True if the document holds a job.
    pub(super) has_job: bool,
    /// The findings, in the order of their discovery.
    pub(super) findings: Vec<Finding>,
    /// The jobs within other objects, which stay as they are.
    pub(super) left: Vec<Finding>,
}

impl<'a> Log<'a> {
    /// Returns an empty log for a document of this file that has `lines` lines before it.
    pub(super) fn new(file: &'a str, lines: usize, choices: Choices) -> Self {
        Self {
            file,
            lines,
            prefix: String::new(),
            choices,
            has_job: false,
            findings: Vec::new(),
            left: Vec::new(),
        }
    }

    /// Reports the jobs within another object.
    pub(super) fn leave(&mut self, jobs: Vec<Finding>) {
        let lines = self.lines;
        self.left.extend(jobs.into_iter().map(|finding| Finding {
            at: finding.at.map(|at| Position {
                line: at.line + lines,
                ..at
            }),
            ..finding
        }));
    }

    pub(super) fn file(&self) -> &'a str {
        self.file
    }

    /// Returns true if fields that cannot be converted are removed.
    pub(super) fn is_lossy(&self) -> bool {
        self.choices.lossy
    }

    /// Returns true if the document cannot be converted.
    pub(super) fn has_errors(&self) -> bool {
        self.findings.iter().any(|f| f.severity == Severity::Error)
    }

    /// Reports that a field has a new path, value or meaning.
    pub(super) fn note(&mut self, at: Position, path: &str, what: impl Into<String>) {
        self.add(Severity::Note, at, path, what.into(), "");
    }

    /// Reports that a field has a new path.
    pub(super) fn moved(&mut self, at: Position, from: &str, to: &str) {
        let to = format!("moved to {}{to}", self.prefix);
        self.note(at, from, to);
    }

    /// Warns that a field gets a value that its author may not have intended.
    pub(super) fn warn(&mut self, at: Position, path: &str, what: impl Into<String>) {
        self.add(Severity::Warning, at, path, what.into(), "");
    }

    /// Reports a field or feature that current kinds lack. This is an error unless such fields may be removed.
    pub(super) fn unsupported(&mut self, at: Position, path: &str, what: &str, remedy: &str) {
        if self.choices.lossy {
            self.add(Severity::Warning, at, path, format!("{what}: removed"), "");
        } else {
            let remedy = format!("{remedy}, or remove the field with --lossy");
            self.add(Severity::Error, at, path, what.to_owned(), &remedy);
        }
    }

    /// Reports a mistake that makes the result ambiguous.
    pub(super) fn error(&mut self, at: Position, path: &str, problem: impl Into<String>, remedy: &str) {
        self.add(Severity::Error, at, path, problem.into(), remedy);
    }

    /// Reports an error that `validate` found in the new object.
    pub(super) fn rejected(&mut self, finding: Finding) {
        let remedy = match is_unknown(&finding) {
            true if finding.remedy.starts_with("move it") => {
                format!("{}, or remove the field with --lossy", finding.remedy)
            }
            true => "remove the field with --lossy".to_owned(),
            false => finding.remedy,
        };
        self.findings.push(Finding {
            remedy,
            at: finding.at.map(|at| Position {
                line: at.line + self.lines,
                ..at
            }),
            ..finding
        });
    }

    fn add(&mut self, severity: Severity, at: Position, path: &str, problem: String, remedy: &str) {
        self.findings.push(Finding {
            severity,
            file: self.file.to_owned(),
            at: Some(Position {
                line: at.line + self.lines,
                ..at
            }),
            path: if path.is_empty() {
                String::new()
            } else {
                format!("{}{path}", self.prefix)
            },
            problem,
            remedy: remedy.to_owned(),
        });
    }
}

/// Returns true if an error concerns a field that is in no schema. A misspelled field stays an error.
pub(super) fn is_unknown(error: &Finding) -> bool {
    error.problem == UNKNOWN_FIELD && !error.remedy.starts_with("did you mean")
}
