//! Stories of jobs: what the kind of a job derives from it, and files.

mod catalog;
mod directory;
mod summary;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use jiff::Timestamp;
use serde_json::Value;
use training_job::Settings;
use training_job::offline;
use training_job_review::Kind;
use training_job_review::fields::fields;
use training_job_story::{Job, RenderedRole, Warning, settings};

pub use catalog::{Catalog, Listed};
pub use directory::{Directory, Entry, Found, Wanted, find, uid_of};
pub(crate) use summary::{RoleSummary, Summary};

/// Returns a stored job for its story. Parts that an invalid job does not have are empty.
pub fn story_of(kind: &Kind, object: &Value, operator: &Settings) -> Job {
    let rendered = offline::render(kind, object, operator).unwrap_or_default();
    Job {
        rendered: RenderedRole::of(&rendered, &kind.framework.keys().replica_type()),
        ..unrendered(kind, object, operator)
    }
}

/// Returns a stored job for its story, without its rendered pods.
pub fn unrendered(kind: &Kind, object: &Value, operator: &Settings) -> Job {
    let fields = fields(kind, object, operator).unwrap_or_default();
    let warnings = offline::check(kind, object)
        .map(|checked| checked.warnings)
        .unwrap_or_default();
    let warnings = warnings.into_iter().map(|warning| Warning {
        path: warning.path,
        problem: warning.problem,
        remedy: warning.remedy,
    });
    Job {
        status: offline::status(kind, object),
        settings: settings(fields, &object["spec"]),
        rendered: Vec::new(),
        warnings: warnings.collect(),
        object: object.clone(),
    }
}

/// Writes a story: as JSON if the name of the file ends in `.json`, else as a page.
///
/// # Errors
/// The file cannot be written. An earlier file of the name is complete then.
pub fn write_story(file: &Path, story: &training_job_story::Story) -> io::Result<()> {
    let is_json = file
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let text = if is_json {
        story.json()
    } else {
        training_job_story::html(story)
    };
    write_file(file, &text)
}

/// Replaces a file as a whole.
pub(crate) fn write_file(file: &Path, text: &str) -> io::Result<()> {
    if file.symlink_metadata().is_ok_and(|meta| !meta.is_file()) {
        // A link, a pipe or /dev/stdout is written to, not replaced.
        return fs::write(file, text);
    }
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let temporary = file.with_file_name(name);
    let written = File::create(&temporary)
        .and_then(|mut new| new.write_all(text.as_bytes()).and_then(|()| new.sync_all()))
        .and_then(|()| fs::rename(&temporary, file));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Returns the time and the text of a line of a log with timestamps.
pub fn timed(line: &str) -> (Option<Timestamp>, &str) {
    match line.split_once(' ') {
        Some((time, text)) => match time.parse() {
            Ok(time) => (Some(time), text),
            Err(_) => (None, line),
        },
        None => (None, line),
    }
}
