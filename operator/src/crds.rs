//! `training-operator crds`.

use std::fs;
use std::process::ExitCode;

use training_job::admission;

use crate::cli::Crds;
use crate::exit::Failure;
use crate::kinds::kinds;
use crate::write;

/// Prints the definitions, or writes them to files.
pub(crate) fn run(arguments: &Crds) -> Result<ExitCode, Failure> {
    let mut all = String::new();
    for kind in kinds() {
        let text = admission::manifest(&kind.definition).map_err(|error| Failure::new("output", error))?;
        let Some(directory) = &arguments.dir else {
            all.push_str(&text);
            continue;
        };
        let spec = &kind.definition.spec;
        let file = directory.join(format!("{}_{}.yaml", spec.group, spec.names.plural));
        fs::create_dir_all(directory)
            .and_then(|()| fs::write(&file, text))
            .map_err(|error| Failure::new(&file.display().to_string(), error))?;
    }
    write::print(&all)?;
    Ok(ExitCode::SUCCESS)
}
