//! Renders changes as a comment on a pull request.

use training_job_controller::process::program;

use super::change::{Change, ChangeType, tally};

/// GitHub's limit is 65,536 characters. The rest is left for additions by a workflow.
const MAX_CHARACTERS: usize = 60_000;

/// Returns the comment, with each change in a folded section. Changes beyond the limit are only counted.
pub(super) fn comment(changes: &[Change]) -> String {
    if changes.is_empty() {
        return "### Training jobs\n\nNothing changes in the pods and services that the jobs get.\n"
            .to_owned();
    }
    let mut text = format!("### Training jobs\n\nPods and services: {}.\n\n", tally(changes));
    let mut remaining = MAX_CHARACTERS.saturating_sub(text.len());
    let mut left_out = 0;
    for change in changes {
        let section = section(change);
        match remaining.checked_sub(section.chars().count()) {
            Some(rest) => {
                remaining = rest;
                text += &section;
            }
            None => left_out += change.titles.len(),
        }
    }
    if left_out > 0 {
        text += &format!(
            "_{left_out} more objects do not fit here: run `{} diff`._\n",
            program().name
        );
    }
    text
}

fn section(change: &Change) -> String {
    let what = match change.what {
        ChangeType::Added => "added",
        ChangeType::Removed => "removed",
        ChangeType::Changed => "changed",
    };
    let summary = match &change.titles[..] {
        [first, .., last] => format!("{first} to {last} ({} alike)", change.titles.len()),
        titles => titles.concat(),
    };
    // A fence must be longer than any fence in the text that it encloses.
    let longest = change.diff.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!(
        "<details><summary>{summary}: {what}</summary>\n\n{fence}diff\n{}{fence}\n\n</details>\n\n",
        change.diff
    )
}
