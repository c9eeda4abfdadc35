//! What the program makes of a manifest, without files, terminal or exit code. For fuzzing alone (feature
//! `__fuzzing`).

use std::rc::Rc;

use kube_manifest::{Node, Source, parse};
use serde_json::Value;
use training_job::Settings;

use crate::check::{self, check_source};
use crate::kinds::{Kind, kinds};
use crate::{explain, render, report, validate, write};

/// The kinds that the program knows. Their schemas take long to make, and are made once.
pub struct Program(Vec<Rc<Kind>>);

/// What is said of a manifest.
pub struct Review {
    /// The findings as `validate` prints them, each with its line and column.
    pub findings: Vec<(Option<(usize, usize)>, String)>,
    /// The same as JSON, and as SARIF.
    pub reports: [Value; 2],
    /// The jobs that can be run.
    pub jobs: Vec<Job>,
}

/// A job that can be run.
pub struct Job(check::Job);

impl Default for Program {
    fn default() -> Self {
        Self(kinds().into_iter().map(Rc::new).collect())
    }
}

impl Program {
    /// What `validate` says of a file with these bytes.
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
}

impl Job {
    /// The job as the operator reads it.
    pub fn object(&self) -> &Value {
        &self.0.object
    }

    /// What `render` prints, as values.
    pub fn render(&self) -> Result<Vec<Value>, String> {
        self.0
            .render(&Settings::default())
            .map_err(|failure| failure.to_string())
    }

    /// What `explain` prints.
    pub fn explain(&self) -> Result<String, String> {
        explain::text(&self.0, &Settings::default()).map_err(|failure| failure.to_string())
    }
}

/// Objects as `render` prints them.
pub fn print(objects: &[Value]) -> Result<String, String> {
    write::documents(objects)
}

/// What `render --summary` prints of objects.
pub fn summary(objects: &[Value]) -> Result<String, String> {
    render::summary(objects, None)
}

/// Reads YAML as the program reads its files.
///
/// # Errors
/// It is no YAML.
pub fn read(text: &str) -> Result<Vec<Value>, String> {
    let documents = parse(text).map_err(|error| error.to_string())?;
    Ok(documents.iter().map(Node::to_json).collect())
}
