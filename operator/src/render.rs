//! `training-operator render`.

use std::process::ExitCode;

use crate::check::check;
use crate::cli::{Format, Render};
use crate::exit::{self, Failure};
use crate::{finding, write};

/// Prints what the jobs would get.
pub(crate) fn run(arguments: &Render) -> Result<ExitCode, Failure> {
    let checked = check(&arguments.files);
    finding::print(&checked.findings);
    if !checked.is_good() {
        return Ok(exit::bad_input());
    }
    let mut objects = Vec::new();
    for job in &checked.jobs {
        let rendered = (job.kind.render)(&job.object);
        objects.extend(rendered.map_err(|refusal| Failure::new(&job.origin, format!("{refusal:?}")))?);
    }
    let text = match arguments.output {
        Format::Yaml => write::documents(&objects),
        Format::Json => write::list(objects),
    };
    write::print(&text.map_err(|error| Failure::new("output", error))?)?;
    Ok(ExitCode::SUCCESS)
}
