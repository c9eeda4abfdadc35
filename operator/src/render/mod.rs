//! `training-operator render`.

mod choice;
mod summary;

use std::process::ExitCode;

use serde_json::Value;

use crate::check::check;
use crate::cli::{Format, Part, Render};
use crate::exit::{self, Failure};
use crate::{finding, write};

pub(crate) use choice::ReplicaName;
pub(crate) use summary::text as summary;

/// Prints what the jobs would get.
pub(crate) fn run(arguments: &Render) -> Result<ExitCode, Failure> {
    let checked = check(&arguments.files);
    finding::print(&checked.findings);
    if !checked.is_good() {
        return Ok(exit::bad_input());
    }
    let mut objects = Vec::new();
    for job in &checked.jobs {
        objects.extend(job.render()?);
    }
    if let Some(name) = &arguments.replica {
        choice::keep_replica(&mut objects, name)?;
    }
    let text = if arguments.summary {
        summary(&objects, arguments.output)
    } else {
        choose(&mut objects, arguments.only);
        match arguments.output.unwrap_or(Format::Yaml) {
            Format::Yaml => write::documents(&objects),
            Format::Json => write::list(objects),
        }
    };
    write::print(&text.map_err(|error| Failure::new("output", error))?)?;
    Ok(ExitCode::SUCCESS)
}

fn choose(objects: &mut Vec<Value>, only: Option<Part>) {
    let kind = match only {
        None => return,
        Some(Part::Services) => "Service",
        Some(Part::Pods | Part::Env) => "Pod",
    };
    objects.retain(|object| object["kind"] == kind);
    if only == Some(Part::Env) {
        objects.iter_mut().for_each(|pod| *pod = choice::environment(pod));
    }
}
