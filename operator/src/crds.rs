//! `training-operator crds`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use training_job::admission;

use crate::exit::Failure;
use crate::kinds::kinds;
use crate::write;

const HELP: &str = "\
Examples:
  training-operator crds | kubectl apply -f -
  training-operator crds --dir crds

Exit codes:
  0  success
  2  the files cannot be written, or bad usage";

/// Print the custom resource definitions.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Write one file per definition, such as kubeflow.org_mxjobs.yaml, into this directory instead.
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
}

/// Prints the definitions in the order of their files, or writes them to files.
pub(crate) fn run(arguments: &Args) -> Result<ExitCode, Failure> {
    let mut files = BTreeMap::new();
    for kind in kinds() {
        let text = admission::manifest(kind.definition()).map_err(|error| Failure::new("output", error))?;
        let spec = &kind.definition().spec;
        files.insert(format!("{}_{}.yaml", spec.group, spec.names.plural), text);
    }
    let Some(directory) = &arguments.dir else {
        write::print(&files.into_values().collect::<String>())?;
        return Ok(ExitCode::SUCCESS);
    };
    for (file, text) in files {
        let file = directory.join(file);
        fs::create_dir_all(directory)
            .and_then(|()| fs::write(&file, text))
            .map_err(|error| Failure::new(&file.display().to_string(), error))?;
    }
    Ok(ExitCode::SUCCESS)
}
