//! Reads stories of finished jobs from a directory, for the views.

use std::path::Path;

use training_job_story::Story;

use crate::exit::Failure;
use crate::report::note;
use crate::story::{Stories, read as read_stories};

/// Returns the stories in a directory of the history, those that ended last first: those of a namespace and a name, or all.
/// Files that are not stories are reported.
///
/// # Errors
/// The directory cannot be read.
pub(super) fn read(
    directory: &Path,
    namespace: Option<&str>,
    name: Option<&str>,
) -> Result<Vec<Story>, Failure> {
    let read = read_stories(directory, namespace, name);
    let read = read.map_err(|error| Failure::new(&format!("--history {}", directory.display()), error))?;
    let Stories { stories, problems } = read;
    if let [first, others @ ..] = &problems[..] {
        let more = match others.len() {
            0 => String::new(),
            others => format!(", and {others} more"),
        };
        note(&format!("left out, because it is not a story: {first}{more}"));
    }
    Ok(stories)
}
