//! Renders changes as a comment on a pull request.

use training_job_program::program;

use super::job::{Difference, JobChange};
use super::objects::{ChangeType, ObjectChange};
use super::text::{summary, word};
use crate::markdown::{block, cell, code, table};

/// GitHub's limit is 65,536 characters. The rest is left for additions by a workflow.
const MAX_CHARACTERS: usize = 60_000;

/// The values of a job that the first table shows.
const MAX_FIELDS: usize = 6;

/// The length of a value in the first table.
const MAX_VALUE_CHARACTERS: usize = 60;

/// The length of a line in a diff. Lists of hosts in environment variables are longer.
const MAX_LINE_CHARACTERS: usize = 400;

/// The notes about the old side that a comment shows.
const MAX_NOTES: usize = 20;

/// Returns the comment: the notes about the old side, a table of the jobs, and a folded section for each. Rows and
/// sections beyond the limit are only counted.
pub(super) fn comment(changes: &[JobChange], notes: &[String]) -> String {
    let mut shown: String = notes
        .iter()
        .take(MAX_NOTES)
        .map(|note| format!("- {}\n", cell(note)))
        .collect();
    if notes.len() > MAX_NOTES {
        shown += &format!("- and {} more\n", notes.len() - MAX_NOTES);
    }
    if !shown.is_empty() {
        shown = format!("Notes about the old side:\n\n{shown}\n");
    }
    if changes.is_empty() {
        return format!(
            "### Training jobs\n\n{shown}Nothing changes in the rules and objects of the jobs.\n"
        );
    }
    let mut remaining = MAX_CHARACTERS;
    let mut fits = |text: &str| match remaining.checked_sub(text.chars().count()) {
        Some(rest) => {
            remaining = rest;
            true
        }
        None => false,
    };
    let rows = changes.iter().map(|job| [cell(&job.title), overview(job)]);
    let rows: Vec<_> = rows.take_while(|row| fits(&row.join("|    |"))).collect();
    let sections = changes.iter().take(rows.len()).map(section);
    let sections: Vec<_> = sections.filter(|section| fits(section)).collect();
    let mut note = String::new();
    if sections.len() < changes.len() {
        note = format!(
            "_A comment has space for {} of these {} jobs, and for the details of {}. Run `{} diff` for all._\n",
            rows.len(),
            changes.len(),
            sections.len(),
            program().name
        );
    }
    format!(
        "### Training jobs\n\n{shown}{}\n\n{}\n{}{note}",
        summary(changes),
        table(["Job", "Change"], rows.into_iter()),
        sections.concat()
    )
}

/// Returns the most important differences of a job on one line.
fn overview(job: &JobChange) -> String {
    if job.change != ChangeType::Changed {
        return format!("{} ({})", word(job.change), job.demand);
    }
    let mut parts: Vec<String> = job.fields.iter().take(MAX_FIELDS).map(short).collect();
    let more = job.fields.len().saturating_sub(MAX_FIELDS);
    if more > 0 {
        parts.push(format!("{more} more"));
    }
    if !job.rules.is_empty() {
        let names: Vec<_> = job.rules.iter().map(|rule| cell(&rule.name)).collect();
        parts.push(format!("rules: {}", names.join(", ")));
    }
    if parts.is_empty() {
        parts.push("objects only".to_owned());
    }
    parts.join(" · ")
}

fn short(difference: &Difference) -> String {
    let side = |text: &Option<String>| match text {
        None => "unset".to_owned(),
        Some(text) => code(&cut(text, MAX_VALUE_CHARACTERS)),
    };
    let (old, new) = (side(&difference.old), side(&difference.new));
    format!("{} {old} → {new}", cell(&difference.name))
}

fn section(job: &JobChange) -> String {
    let mut text = format!(
        "<details><summary>{}: {}</summary>\n\n",
        job.title,
        word(job.change)
    );
    let differences = job.fields.iter().chain(&job.rules);
    let rows: Vec<_> = differences
        .map(|difference| {
            let side = |text: &Option<String>| {
                text.as_ref()
                    .map_or_else(|| "unset".to_owned(), |text| cell(text))
            };
            [
                cell(&difference.name),
                side(&difference.old),
                side(&difference.new),
            ]
        })
        .collect();
    if !rows.is_empty() {
        text += &table(["Rule or value", "Before", "After"], rows.into_iter());
        text += "\n";
    }
    for object in &job.objects {
        text += &object_section(object);
    }
    text + "</details>\n\n"
}

fn object_section(object: &ObjectChange) -> String {
    let like = object.like.as_ref().map(|like| format!(", like {}", cell(like)));
    let (title, like) = (cell(&object.title()), like.unwrap_or_default());
    let mut text = format!("**{title}**: {}{like}\n\n", word(object.change));
    // The content of a removed object is of no interest.
    if !object.diff.is_empty() && object.change != ChangeType::Removed {
        let lines = object
            .diff
            .lines()
            .map(|line| cut(line, MAX_LINE_CHARACTERS) + "\n");
        text += &block("diff", &lines.collect::<String>());
        text += "\n";
    }
    text
}

/// Returns text with at most this number of characters, and its length if it is longer.
fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}… ({} characters)", &text[..end], text.chars().count()),
    }
}
