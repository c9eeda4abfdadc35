//! `training-operator remote-shell install`.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use training_job_cli::Failure;
use training_job_cli::help;

/// The script that an MPIJob calls as `kubectl`. The program is in the directory of the script.
const KUBECTL: &str = "#!/bin/sh\nexec \"${0%/*}/training-operator\" remote-shell \"$@\"\n";

const HELP: &str = "\
The init container of an MPIJob's launcher runs this command if --mpi-remote-shell-image is set. The
copy must run in the launcher's image: a static program, as the Dockerfile builds it, runs in any.

Examples:
  training-operator remote-shell install /opt/kube

Exit codes:
  0  both files are written
  2  a file cannot be written, or bad usage";

/// Copy this program into a directory, with a kubectl script that runs it for exec.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub(crate) struct Args {
    /// The directory, which is created if it does not exist.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

pub(super) fn run(arguments: &Args) -> Result<ExitCode, Failure> {
    let directory = &arguments.directory;
    let failed = |error: io::Error| Failure::new(&directory.display().to_string(), error);
    install(directory).map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}

fn install(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let program = std::env::current_exe()?;
    let copy = |part: &Path| fs::copy(&program, part).map(drop);
    write(&directory.join("training-operator"), copy)?;
    write(&directory.join("kubectl"), |part| fs::write(part, KUBECTL))
}

/// Writes an executable file atomically, because an init container that is killed runs again.
fn write(path: &Path, fill: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    let part = path.with_extension("part");
    fill(&part)?;
    fs::set_permissions(&part, Permissions::from_mode(0o755))?;
    fs::rename(&part, path)
}
