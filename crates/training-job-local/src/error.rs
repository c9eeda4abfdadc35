//! The reasons that jobs are not run.

use std::fmt::Write as _;
use std::io;

use kube_manifest::Finding;

use local_node::NodeError;
#[cfg(feature = "cluster")]
use tokio_rustls::rustls;
use training_job::FieldErrors;

#[cfg(feature = "cluster")]
use crate::data::DataError;

/// The reason that jobs are not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A manifest is not YAML, or contains an invalid job. One line for each error: `file:line:column: field:
    /// problem; remedy`.
    #[error("{}", lines(.0))]
    Manifest(Vec<Finding>),
    /// An object has a kind that cannot be run here.
    #[error("unknown kind {kind:?}; use {known}")]
    Kind {
        /// The object's kind.
        kind: String,
        /// The kinds that can be run.
        known: String,
    },
    /// The input contains no job.
    #[error("the input contains no job; add an object of kind {known}")]
    Empty {
        /// The kinds that can be run.
        known: String,
    },
    /// A job has invalid fields.
    #[error("{kind} {name}: {errors}")]
    Invalid {
        /// The job's kind.
        kind: String,
        /// The job's name.
        name: String,
        /// The fields, each with its problem and remedy.
        errors: FieldErrors,
    },
    /// Two jobs have the same name, so that their pods' names would clash.
    #[error("duplicate job {kind} {name}; give each job its own name")]
    Twice {
        /// The kind of the second.
        kind: String,
        /// The name of both.
        name: String,
    },
    /// The in-memory API rejected an object.
    #[error("the in-memory API rejected {what}: {}", reason(.error))]
    Refused {
        /// A description of the object.
        what: String,
        /// The error of the API.
        #[source]
        error: kube::Error,
    },
    /// The API of a local cluster cannot be offered to clients.
    #[error("the API server cannot be started: {0}")]
    Server(#[from] ServerError),
    /// The directory of a cluster cannot be used.
    #[cfg(feature = "cluster")]
    #[error(transparent)]
    Data(#[from] DataError),
    /// The machine lacks something.
    #[error(transparent)]
    Node(#[from] NodeError),
}

impl RunError {
    /// Returns true if the jobs are the cause, and not the machine: usually exit code 2.
    pub fn is_bad_input(&self) -> bool {
        !matches!(self, Self::Node(_) | Self::Refused { .. })
    }
}

/// Returns the message of the API alone, because the error repeats it with all fields of the response.
fn reason(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        error => error.to_string(),
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

/// The reason that the API cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// No port, or no random numbers.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The certificate cannot be made.
    #[cfg(feature = "cluster")]
    #[error("certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The certificate cannot be used.
    #[cfg(feature = "cluster")]
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
}
