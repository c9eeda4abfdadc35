//! Why jobs are not run.

use std::fmt::Write as _;

use kube_manifest::Finding;

use crate::NodeError;
use training_job::FieldErrors;

/// Why jobs are not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A manifest is no YAML, or holds what is no valid job: one line for each error, `file:line:column: field: problem;
    /// remedy`.
    #[error("{}", lines(.0))]
    Manifest(Vec<Finding>),
    /// An object of a kind that is not here.
    #[error("{kind:?} is no kind that can be run; known are {known}")]
    Kind {
        /// Its kind.
        kind: String,
        /// The kinds that are here.
        known: String,
    },
    /// There is no job.
    #[error("there is no job; add an object of kind {known}")]
    Empty {
        /// The kinds that are here.
        known: String,
    },
    /// Fields are wrong.
    #[error("{kind} {name}: {errors}")]
    Invalid {
        /// The job's kind.
        kind: String,
        /// Its name.
        name: String,
        /// Which, why, and what to do.
        errors: FieldErrors,
    },
    /// Two jobs would share their pods' names.
    #[error("{kind} {name} is there twice; give each job its own name")]
    Twice {
        /// The kind of the second.
        kind: String,
        /// Their name.
        name: String,
    },
    /// The in-memory API does not take it.
    #[error("{what} was refused: {error}")]
    Refused {
        /// What it is.
        what: String,
        /// Why.
        #[source]
        error: kube::Error,
    },
    /// The machine lacks something.
    #[error(transparent)]
    Node(#[from] NodeError),
}

impl RunError {
    /// Whether the jobs are to blame, and not the machine: usually exit code 2.
    pub fn is_bad_input(&self) -> bool {
        !matches!(self, Self::Node(_) | Self::Refused { .. })
    }
}

fn lines(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let separator = if text.is_empty() { "" } else { "\n" };
        // Writing to a string cannot fail.
        let _ = write!(text, "{separator}{finding}");
    }
    text
}
