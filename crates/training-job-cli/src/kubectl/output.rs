//! The formats of a view.

use serde::Serialize;

use crate::exit::Failure;
use crate::write;

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

/// Prints a value as JSON or YAML.
pub(crate) fn print_value(output: Output, value: &impl Serialize) -> Result<(), Failure> {
    match output {
        Output::Yaml => {
            let value = serde_json::to_value(value).map_err(|error| Failure::new("output", error))?;
            let text =
                write::yaml(&write::Readable(&value)).map_err(|error| Failure::new("output", error))?;
            Ok(write::print(&text)?)
        }
        _ => write::print_json(value),
    }
}
