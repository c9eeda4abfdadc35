//! `training-operator crds`.

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
  0  all is well
  2  the files cannot be written, or bad usage";

/// Print the custom resource definitions.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Write one file per definition into this directory instead, such as kubeflow.org_mxjobs.yaml.
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
}

/// Prints the definitions, or writes them to files.
pub(crate) fn run(arguments: &Args) -> Result<ExitCode, Failure> {
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
