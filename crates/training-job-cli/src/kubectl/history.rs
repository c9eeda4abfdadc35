//! Reads the history of finished jobs, for the views.

use std::io;
use std::path::Path;

use crate::exit::Failure;
use crate::report::note;
use crate::story::{Catalog, Found, Summary, Wanted, find as find_story};

/// Returns the finished jobs in a directory of the history, those that ended last first: those of a namespace, or all.
/// Files that are not stories are reported.
///
/// # Errors
/// The directory cannot be read.
pub(super) fn list(directory: &Path, namespace: Option<&str>) -> Result<Vec<Summary>, Failure> {
    let listed = Catalog::default().list(directory, namespace);
    let listed = listed.map_err(|error| unreadable(directory, error))?;
    report_problems(&listed.problems);
    Ok(listed.jobs)
}

/// Returns the story of the wanted job that ended last. Files that are not stories are reported.
///
/// # Errors
/// The directory cannot be read.
pub(super) fn find(directory: &Path, wanted: &Wanted<'_>) -> Result<Found, Failure> {
    let found = find_story(directory, wanted).map_err(|error| unreadable(directory, error))?;
    report_problems(&found.problems);
    Ok(found)
}

fn unreadable(directory: &Path, error: io::Error) -> Failure {
    Failure::new(&format!("--history {}", directory.display()), error)
}

fn report_problems(problems: &[String]) {
    if let [first, others @ ..] = problems {
        let more = match others.len() {
            0 => String::new(),
            others => format!(", and {others} more"),
        };
        note(&format!("left out, because it is not a story: {first}{more}"));
    }
}
