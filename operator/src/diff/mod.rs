//! `training-operator diff`.

mod change;
mod markdown;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;

use crate::check::check;
use crate::cli::{Diff, DiffFormat};
use crate::exit::{self, Failure};
use crate::{finding, line_diff, write};
use change::{Change, What};

/// Shows what changes in what jobs get.
pub(crate) fn run(arguments: &Diff) -> Result<ExitCode, Failure> {
    let (Some(old), Some(new)) = (side(&arguments.old)?, side(&arguments.new)?) else {
        return Ok(exit::bad_input());
    };
    let changes = change::changes(&old, &new).map_err(|error| Failure::new("output", error))?;
    match arguments.format {
        DiffFormat::Text => write::print_styled(&text(&changes))?,
        DiffFormat::Markdown => write::print(&markdown::comment(&changes))?,
    }
    Ok(if changes.is_empty() {
        ExitCode::SUCCESS
    } else {
        exit::found()
    })
}

/// The objects of one side; none if its jobs are wrong, of which is told.
fn side(path: &PathBuf) -> Result<Option<Vec<Value>>, Failure> {
    // As in git's own diffs: a side on which there is nothing.
    if path == Path::new("/dev/null") {
        return Ok(Some(Vec::new()));
    }
    let checked = check(std::slice::from_ref(path));
    finding::print(&checked.findings);
    if !checked.is_good() {
        return Ok(None);
    }
    let objects = checked.jobs.iter().map(|job| job.render());
    Ok(Some(objects.collect::<Result<Vec<_>, _>>()?.concat()))
}

fn text(changes: &[Change]) -> String {
    let mut text = String::new();
    for change in changes {
        let bold = anstyle::Style::new().bold();
        let what = match change.what {
            What::Added => "is added",
            What::Removed => "is removed",
            What::Changed => "changes",
        };
        for title in &change.titles {
            text += &format!("{bold}{title} {what}{bold:#}\n");
        }
        text += &line_diff::styled(&change.diff);
    }
    if !changes.is_empty() {
        text += &format!("{}\n", change::tally(changes));
    }
    text
}
