//! What is told of a conversion.

use kube_manifest::{Finding, Position, Severity};

/// What is told of one document, and where it is.
#[derive(Debug)]
pub(super) struct Log<'a> {
    /// The file's name.
    file: &'a str,
    /// The lines before the document.
    lines: usize,
    /// The path of the job in the document, with a dot behind it; empty if it is the document.
    pub(super) prefix: String,
    /// Whether what cannot be carried over may be left out.
    lossy: bool,
    /// All of it, in the order in which it was noticed.
    pub(super) findings: Vec<Finding>,
}

impl<'a> Log<'a> {
    /// For a document of this file that has so many lines before it.
    pub(super) fn new(file: &'a str, lines: usize, lossy: bool) -> Self {
        Self {
            file,
            lines,
            prefix: String::new(),
            lossy,
            findings: Vec::new(),
        }
    }

    /// Whether the document cannot be converted.
    pub(super) fn has_errors(&self) -> bool {
        self.findings.iter().any(|f| f.severity == Severity::Error)
    }

    /// A field changed its place, its value, or its meaning.
    pub(super) fn note(&mut self, at: Position, path: &str, what: impl Into<String>) {
        self.add(Severity::Note, at, path, what.into(), "");
    }

    /// A field has another place now.
    pub(super) fn moved(&mut self, at: Position, from: &str, to: &str) {
        let to = format!("it is {}{to} now", self.prefix);
        self.note(at, from, to);
    }

    /// Something that today's kinds do not have: an error, unless it may be left out.
    pub(super) fn lost(&mut self, at: Position, path: &str, what: &str, remedy: &str) {
        if self.lossy {
            self.add(Severity::Warning, at, path, format!("{what}: it is left out"), "");
        } else {
            let remedy = format!("{remedy}, or leave it out by --lossy");
            self.add(Severity::Error, at, path, what.to_owned(), &remedy);
        }
    }

    /// A mistake in the job, by which nobody knows what it should become.
    pub(super) fn wrong(&mut self, at: Position, path: &str, problem: impl Into<String>, remedy: &str) {
        self.add(Severity::Error, at, path, problem.into(), remedy);
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
