//! The formats of a view.

use std::io;

use serde::Serialize;
use training_job_review::{Failure, write};

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    /// For people.
    Text,
    /// For people, with more columns or lines.
    Wide,
    /// The resource and name of each job, such as mxjob.kubeflow.org/train.
    Name,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// Returns a value as JSON, or as a YAML document.
pub(super) fn text_of(output: Output, value: &impl Serialize) -> io::Result<String> {
    let text = match output {
        Output::Yaml => {
            let value = serde_json::to_value(value)?;
            write::yaml(&write::Readable(&value))
        }
        _ => write::json(value),
    };
    text.map_err(io::Error::other)
}

/// Prints a value as JSON or YAML.
pub(crate) fn print_value(output: Output, value: &impl Serialize) -> Result<(), Failure> {
    let text = text_of(output, value).map_err(|error| Failure::new("output", error))?;
    Ok(write::print(&text)?)
}
