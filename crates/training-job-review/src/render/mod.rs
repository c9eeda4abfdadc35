//! `render`.

mod args;
mod selection;
mod summary;

use std::process::ExitCode;

use args::{Format, Part};
use serde_json::Value;

use crate::check::valid_jobs;
use crate::exit::{self, Failure};
use crate::kinds::Kinds;
use crate::write;

pub use args::Args;
pub use selection::ReplicaName;
pub use selection::keep_replica;
pub(crate) use summary::{Demand, demand, text as summary};

/// Prints the objects that the jobs get.
pub fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let settings = arguments.settings.read()?;
    let Some(jobs) = valid_jobs(kinds, &arguments.files) else {
        return Ok(exit::bad_input());
    };
    let mut objects = Vec::new();
    for job in &jobs {
        objects.extend(job.render(&settings)?);
    }
    if let Some(name) = &arguments.replica {
        keep_replica("--replica", &mut objects, kinds, name)?;
    }
    let text = if arguments.summary {
        summary(&objects, kinds, arguments.output)
    } else {
        keep_part(&mut objects, arguments.only);
        match arguments.output.unwrap_or(Format::Yaml) {
            Format::Yaml => write::documents(&objects),
            Format::Json => write::list(objects),
        }
    };
    write::print(&text.map_err(|error| Failure::new("output", error))?)?;
    Ok(ExitCode::SUCCESS)
}

fn keep_part(objects: &mut Vec<Value>, only: Option<Part>) {
    let kind = match only {
        None => return,
        Some(Part::Services) => "Service",
        Some(Part::Pods | Part::Env) => "Pod",
    };
    objects.retain(|object| object["kind"] == kind);
    if only == Some(Part::Env) {
        objects
            .iter_mut()
            .for_each(|pod| *pod = selection::environment(pod));
    }
}
