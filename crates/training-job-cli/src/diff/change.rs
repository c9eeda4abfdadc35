//! Compares two sides and classifies each object as added, removed or changed.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{line_diff, write};

/// Objects that change in the same way.
pub(super) struct Change {
    pub(super) titles: Vec<String>,
    pub(super) what: ChangeType,
    /// The unified diff of the first object. The diffs of the others differ at most in their context lines.
    pub(super) diff: String,
}

/// The kind of change of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeType {
    Added,
    Removed,
    Changed,
}

/// Identifies an object by its title and its number among the objects of that title, because two files of one side
/// may contain the same job.
type Key = (String, usize);

/// Returns the differences between two sides in the order of the new side. Removed objects come last.
pub(super) fn changes(old: &[Value], new: &[Value]) -> Result<Vec<Change>, String> {
    let mut before: BTreeMap<Key, &Value> = keyed(old).into_iter().collect();
    let mut changes: Vec<Change> = Vec::new();
    for (key, object) in keyed(new) {
        match before.remove(&key) {
            Some(same) if same == object => {}
            Some(other) => add(
                &mut changes,
                key.0,
                ChangeType::Changed,
                Some(other),
                Some(object),
            )?,
            None => add(&mut changes, key.0, ChangeType::Added, None, Some(object))?,
        }
    }
    for (key, object) in keyed(old) {
        if before.contains_key(&key) {
            add(&mut changes, key.0, ChangeType::Removed, Some(object), None)?;
        }
    }
    Ok(changes)
}

fn keyed(objects: &[Value]) -> Vec<(Key, &Value)> {
    let mut seen = BTreeMap::<String, usize>::new();
    let key = |object| {
        let title = title(object);
        let n = seen.entry(title.clone()).or_default();
        *n += 1;
        ((title, *n), object)
    };
    objects.iter().map(key).collect()
}

fn title(object: &Value) -> String {
    let title = write::title(object);
    match object["metadata"]["namespace"].as_str() {
        None | Some("default") => title,
        Some(namespace) => format!("{title} in {namespace}"),
    }
}

fn add(
    changes: &mut Vec<Change>,
    title: String,
    what: ChangeType,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Result<(), String> {
    let yaml = |object: Option<&Value>| match object {
        Some(object) => write::yaml(&write::Readable(object)),
        None => Ok(String::new()),
    };
    let diff = line_diff::unified(&yaml(old)?, &yaml(new)?);
    match changes.last_mut() {
        // Identical changes of many objects, such as a new image for a hundred workers, are shown once.
        Some(last) if last.what == what && changed_lines(&last.diff).eq(changed_lines(&diff)) => {
            last.titles.push(title)
        }
        _ => changes.push(Change {
            titles: vec![title],
            what,
            diff,
        }),
    }
    Ok(())
}

/// Returns the hunk headers and the changed lines of a diff. Context lines are excluded because they may contain the
/// index of a replica.
fn changed_lines(diff: &str) -> impl Iterator<Item = &str> {
    diff.lines().filter(|line| !line.starts_with(' '))
}

/// Returns the numbers of changed, added and removed objects as text.
pub(super) fn tally(changes: &[Change]) -> String {
    let count = |what| -> usize {
        let of = changes.iter().filter(|c| c.what == what);
        of.map(|c| c.titles.len()).sum()
    };
    format!(
        "{} changed, {} added, {} removed",
        count(ChangeType::Changed),
        count(ChangeType::Added),
        count(ChangeType::Removed)
    )
}
