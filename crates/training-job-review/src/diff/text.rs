//! Renders changes for a terminal.

use super::job::{Difference, JobChange};
use super::objects::{ChangeType, tally};
use crate::line_diff;

/// Returns the changes with terminal styles.
pub(super) fn text(changes: &[JobChange]) -> String {
    let bold = anstyle::Style::new().bold();
    let mut text = String::new();
    for job in changes {
        let details = match job.change {
            ChangeType::Changed => String::new(),
            _ => format!(" ({})", job.demand),
        };
        text += &format!("{bold}{}: {}{details}{bold:#}\n", job.title, word(job.change));
        for difference in job.fields.iter().chain(&job.rules) {
            text += &format!("  {}\n", line(difference));
        }
        for object in &job.objects {
            let like = object.like.as_ref().map(|like| format!(", like {like}"));
            let (title, like) = (object.title(), like.unwrap_or_default());
            text += &format!("{bold}{title}: {}{like}{bold:#}\n", word(object.change));
            text += &line_diff::styled(&object.diff);
        }
    }
    if !changes.is_empty() {
        text += &format!("{}\n", summary(changes));
    }
    text
}

/// Returns the numbers of jobs and objects: `Jobs: 1. Objects: 2 changed, 0 added, 0 removed.`
pub(super) fn summary(changes: &[JobChange]) -> String {
    let objects = tally(changes.iter().flat_map(|job| &job.objects));
    format!("Jobs that differ: {}. Objects: {objects}.", changes.len())
}

pub(super) fn word(change: ChangeType) -> &'static str {
    match change {
        ChangeType::Added => "added",
        ChangeType::Removed => "removed",
        ChangeType::Changed => "changed",
    }
}

fn line(difference: &Difference) -> String {
    let side = |text: &Option<String>| text.as_deref().unwrap_or("unset").to_owned();
    format!(
        "{}: {} → {}",
        difference.name,
        side(&difference.old),
        side(&difference.new)
    )
}
