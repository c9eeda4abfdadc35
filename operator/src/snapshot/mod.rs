//! `training-operator snapshot`: what jobs get, committed beside them for people to review.

mod corpus;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::check::check;
use crate::cli::Snapshot;
use crate::exit::{self, Failure};
use crate::{finding, line_diff, write};

/// Writes or checks the snapshots of jobs.
pub(crate) fn run(arguments: &Snapshot) -> Result<ExitCode, Failure> {
    let checked = check(&arguments.files);
    finding::print(&checked.findings);
    if !checked.is_good() {
        return Ok(exit::bad_input());
    }
    let wanted = corpus::files(&checked.jobs, &arguments.files, &arguments.dir)?;
    let found = corpus::found(&arguments.dir)?;
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

fn at(file: &Path, error: std::io::Error) -> Failure {
    Failure::new(&file.display().to_string(), error)
}

type Files = BTreeMap<PathBuf, String>;

fn compare(wanted: &Files, found: &Files, directory: &Path) -> Result<ExitCode, Failure> {
    let mut text = String::new();
    let mut wrong = 0;
    let mut say = |file: &Path, what: &str, diff: &str| {
        wrong += 1;
        text += &format!("{}: {what}\n{}", file.display(), line_diff::styled(diff));
    };
    for (file, new) in wanted {
        match found.get(file) {
            Some(old) if old == new => {}
            Some(old) => say(file, "it is stale", &line_diff::unified(old, new)),
            None => say(file, "it is missing", ""),
        }
    }
    for file in found.keys().filter(|file| !wanted.contains_key(*file)) {
        say(file, "it belongs to no job", "");
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
