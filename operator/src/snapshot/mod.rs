//! `training-operator snapshot`: what jobs get, committed beside them for people to review.

mod files;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::check::check;
use crate::exit::{self, Failure};
use crate::settings::SettingsArgs;
use crate::{line_diff, report, write};

use files::{Files, at};

const HELP: &str = "\
Each job gets one file: the job as a comment, then what it gets. Files that this command made and that
belong to no job any more are deleted, so name all jobs of a directory in one call.

Examples:
  training-operator snapshot jobs/ --dir snapshots
  training-operator snapshot jobs/ --dir snapshots --check

Exit codes:
  0  the files are written; with --check, they are as they would be written
  1  with --check: a file is stale, missing or belongs to no job
  2  bad YAML, a job that the operator would refuse, a file that is in the way, or bad usage";

/// Write what jobs get to files that people can review.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Files, directories (all *.yaml, *.yml and *.json below them) or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Where the snapshots are.
    #[arg(long)]
    pub(crate) dir: PathBuf,
    /// Write nothing; show what would change.
    #[arg(long)]
    pub(crate) check: bool,
    /// The operator's settings.
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}

/// Writes or checks the snapshots of jobs.
pub(crate) fn run(arguments: &Args) -> Result<ExitCode, Failure> {
    let settings = arguments.settings.read()?;
    let checked = check(&arguments.files);
    report::print(&checked.findings);
    if !checked.is_good() {
        return Ok(exit::bad_input());
    }
    let wanted = files::wanted(&checked.jobs, &settings, &arguments.files, &arguments.dir)?;
    let found = files::found(&arguments.dir)?;
    if arguments.check {
        return compare(&wanted, &found, &arguments.dir);
    }
    for file in found.keys().filter(|file| !wanted.contains_key(*file)) {
        fs::remove_file(file).map_err(|error| at(file, error))?;
    }
    for (file, text) in &wanted {
        if found.get(file) != Some(text) {
            put(file, text).map_err(|error| at(file, error))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn put(file: &Path, text: &str) -> std::io::Result<()> {
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(file, text)
}

fn compare(wanted: &Files, found: &Files, directory: &Path) -> Result<ExitCode, Failure> {
    let mut text = String::new();
    let mut wrong = 0;
    let mut report = |file: &Path, what: &str, diff: &str| {
        wrong += 1;
        text += &format!("{}: {what}\n{}", file.display(), line_diff::styled(diff));
    };
    for (file, new) in wanted {
        match found.get(file) {
            Some(old) if old == new => {}
            Some(old) => report(file, "it is stale", &line_diff::unified(old, new)),
            None => report(file, "it is missing", ""),
        }
    }
    for file in found.keys().filter(|file| !wanted.contains_key(*file)) {
        report(file, "it belongs to no job", "");
    }
    write::print_styled(&text)?;
    if wrong == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    anstream::eprintln!(
        "training-operator: {wrong} of the snapshots in {} are wrong; run the same command without --check and review what changes",
        directory.display()
    );
    Ok(exit::found())
}
