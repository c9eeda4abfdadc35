//! Checks and renders manifests without files, terminal or exit codes. Only for fuzzing (feature `__fuzzing`).

use kube_manifest::{Node, Source, parse};
use serde_json::Value;
use training_job::Settings;

use crate::check::{self, check_source};
use crate::kinds::Kinds;
use crate::{explain, render, report, validate, write};

/// The kinds of job. Their schemas are expensive to build, so they are built once.
pub struct Program(Kinds);

/// The result of checking a manifest.
pub struct Review {
    /// The findings as `validate` prints them, each with its line and column.
    pub findings: Vec<(Option<(usize, usize)>, String)>,
    /// The findings as JSON, and as SARIF.
    pub reports: [Value; 2],
    /// The valid jobs.
    pub jobs: Vec<Job>,
}

/// A valid job.
pub struct Job(check::Job);

impl Program {
    /// Returns the program with these kinds.
    pub fn new(kinds: Kinds) -> Self {
        Self(kinds)
    }

    /// Returns the findings and the jobs of a file with these bytes, as `validate` reports them.
    pub fn review(&self, bytes: Vec<u8>) -> Review {
        let source = Source::from_bytes("job.yaml".to_owned(), 0, Ok(bytes));
        let checked = check_source(&self.0, source);
        let findings = checked.findings.iter();
        Review {
            reports: [validate::json(&checked), validate::sarif::log(&checked.findings)],
            findings: findings
                .map(|f| (f.at.map(|at| (at.line, at.column)), report::styled(f)))
                .collect(),
            jobs: checked.jobs.into_iter().map(Job).collect(),
        }
    }

    /// Returns the text that `render --summary` prints for these objects.
    pub fn summary(&self, objects: &[Value]) -> Result<String, String> {
        render::summary(objects, &self.0, None)
    }
}

impl Job {
    /// Returns the job as the operator reads it.
    pub fn object(&self) -> &Value {
        &self.0.object
    }

    /// Returns the objects that `render` prints.
    pub fn render(&self) -> Result<Vec<Value>, String> {
        self.0
            .render(&Settings::default())
            .map_err(|failure| failure.to_string())
    }

    /// Returns the text that `explain` prints.
    pub fn explain(&self) -> Result<String, String> {
        explain::explain(&self.0, &Settings::default())
            .map(|explanation| explanation.text())
            .map_err(|failure| failure.to_string())
    }
}

/// Returns the text that `render` prints for these objects.
pub fn print(objects: &[Value]) -> Result<String, String> {
    write::documents(objects)
}

/// Reads YAML as the program reads its files.
///
/// # Errors
/// The text is not valid YAML.
pub fn read(text: &str) -> Result<Vec<Value>, String> {
    let documents = parse(text).map_err(|error| error.to_string())?;
    Ok(documents.iter().map(Node::to_json).collect())
}
