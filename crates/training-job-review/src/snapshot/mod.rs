//! `snapshot`: writes the objects of jobs to files, which are committed and reviewed with the jobs.

mod files;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use files::{Files, io_failure};
use training_job_program::program;

use crate::check::valid_jobs;
use crate::exit::{self, Failure};
use crate::help::help;
use crate::kinds::Kinds;
use crate::settings::SettingsArgs;
use crate::{line_diff, write};

const HELP: &str = "\
Each job gets one file: the job as a comment, followed by its objects. Files of this command that no
longer belong to a job are deleted, so name all jobs of a directory in one call.

Examples:
  {program} snapshot jobs/ --dir snapshots
  {program} snapshot jobs/ --dir snapshots --check

Exit codes:
  0  the files are up to date
  1  with --check: a file is stale, missing, or belongs to no job
  2  bad YAML, an invalid job, an existing file that is not a snapshot, or bad usage";

/// Write the objects of jobs to files for review.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub struct Args {
    /// Files, directories (with all *.yaml, *.yml and *.json files below them), or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The directory of the snapshots.
    #[arg(long)]
    dir: PathBuf,
    /// Write nothing; show what would change.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    settings: SettingsArgs,
}

/// The lines of a difference that `--check` prints for each file. `diff` groups the differences of a larger job.
const MAX_DIFF_LINES: usize = 60;

/// Writes or checks the snapshots of jobs.
pub fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let settings = arguments.settings.read()?;
    let Some(jobs) = valid_jobs(kinds, &arguments.files) else {
        return Ok(exit::bad_input());
    };
    let expected = files::expected(&jobs, &settings, &arguments.files, &arguments.dir)?;
    let existing = files::existing(&arguments.dir)?;
    if arguments.check {
        return compare(&expected, &existing, &arguments.dir);
    }
    for file in existing.keys().filter(|file| !expected.contains_key(*file)) {
        fs::remove_file(file).map_err(|error| io_failure(file, error))?;
    }
    for (file, text) in &expected {
        if existing.get(file) != Some(text) {
            put(file, text).map_err(|error| io_failure(file, error))?;
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

fn compare(expected: &Files, existing: &Files, directory: &Path) -> Result<ExitCode, Failure> {
    let mut text = String::new();
    let mut outdated = 0;
    let mut report = |file: &Path, what: &str, diff: &str| {
        outdated += 1;
        let shown: String = diff.split_inclusive('\n').take(MAX_DIFF_LINES).collect();
        text += &format!("{}: {what}\n{}", file.display(), line_diff::styled(&shown));
        let more = diff.lines().count().saturating_sub(MAX_DIFF_LINES);
        if more > 0 {
            text += &format!("… {more} more lines\n");
        }
    };
    for (file, new) in expected {
        match existing.get(file) {
            Some(old) if old == new => {}
            Some(old) => report(file, "stale", &line_diff::unified(old, new)),
            None => report(file, "missing", ""),
        }
    }
    for file in existing.keys().filter(|file| !expected.contains_key(*file)) {
        report(file, "belongs to no job", "");
    }
    write::print_styled(&text)?;
    if outdated == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    let (snapshots, are) = if outdated == 1 {
        ("snapshot", "is")
    } else {
        ("snapshots", "are")
    };
    anstream::eprintln!(
        "{}: {outdated} {snapshots} in {} {are} outdated; run the same command without --check and review the changes",
        program().name,
        directory.display()
    );
    Ok(exit::check_failed())
}
