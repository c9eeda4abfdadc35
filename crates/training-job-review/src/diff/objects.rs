//! Compares the objects of a job and groups those that change in the same way.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{line_diff, write};

/// Objects that change in the same way.
pub(super) struct ObjectChange {
    /// The kind and name of each object, in the order of creation.
    pub(super) titles: Vec<String>,
    pub(super) change: ChangeType,
    /// An unchanged or changed object that the added objects equal, except for the numbers in them.
    pub(super) like: Option<String>,
    /// The unified diff of the first object. The diffs of the others differ at most in numbers and context lines.
    pub(super) diff: String,
}

/// The kind of change of an object or a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ChangeType {
    Added,
    Removed,
    Changed,
}

/// Returns the differences between the objects of two sides, in the order of the new side. Removed objects come last.
pub(super) fn changes(old: &[Value], new: &[Value]) -> Result<Vec<ObjectChange>, String> {
    let mut before: BTreeMap<String, &Value> = old.iter().map(|o| (write::title(o), o)).collect();
    let mut groups = Groups::default();
    // The last object of each role or kind that both sides have.
    let mut examples = BTreeMap::<String, (String, &Value)>::new();
    let mut added = Vec::new();
    for object in new {
        let title = write::title(object);
        match before.remove(&title) {
            Some(other) => {
                examples.insert(group_of(&title).to_owned(), (title.clone(), object));
                if other != object {
                    groups.add(title, ChangeType::Changed, Some(other), Some(object))?;
                }
            }
            None => added.push((title, object)),
        }
    }
    let mut masked_examples = BTreeMap::<&str, String>::new();
    for (title, object) in added {
        let like = match examples.get(group_of(&title)) {
            None => None,
            Some((example, value)) => {
                if !masked_examples.contains_key(example.as_str()) {
                    masked_examples.insert(example, masked(&yaml(Some(value))?));
                }
                let is_like = masked_examples[example.as_str()] == masked(&yaml(Some(object))?);
                is_like.then(|| example.clone())
            }
        };
        groups.add_like(title, object, like)?;
    }
    for object in old {
        let title = write::title(object);
        if before.contains_key(&title) {
            groups.add(title, ChangeType::Removed, Some(object), None)?;
        }
    }
    Ok(groups.changes)
}

/// The changes, and the position of each group among them.
#[derive(Default)]
struct Groups {
    changes: Vec<ObjectChange>,
    positions: BTreeMap<(String, u8, String), usize>,
}

impl Groups {
    fn add(
        &mut self,
        title: String,
        change: ChangeType,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> Result<(), String> {
        let diff = line_diff::unified(&yaml(old)?, &yaml(new)?);
        // The replicas of a role have one template, so their diffs differ in numbers only: indices and addresses.
        let changed_lines: Vec<_> = diff.lines().filter(|line| !line.starts_with(' ')).collect();
        let alike = masked(&changed_lines.join("\n"));
        self.push(title, change, alike, None, diff);
        Ok(())
    }

    /// Adds an added object. The diff of an object that is like another is left out.
    fn add_like(&mut self, title: String, object: &Value, like: Option<String>) -> Result<(), String> {
        match like {
            None => self.add(title, ChangeType::Added, None, Some(object)),
            Some(like) => {
                self.push(title, ChangeType::Added, String::new(), Some(like), String::new());
                Ok(())
            }
        }
    }

    fn push(&mut self, title: String, change: ChangeType, alike: String, like: Option<String>, diff: String) {
        let key = (group_of(&title).to_owned(), change as u8, alike);
        if let Some(at) = self.positions.get(&key) {
            return self.changes[*at].titles.push(title);
        }
        self.positions.insert(key, self.changes.len());
        self.changes.push(ObjectChange {
            titles: vec![title],
            change,
            like,
            diff,
        });
    }
}

impl ObjectChange {
    /// Returns the kind and the names of the objects: `Pod train-worker-0 … train-worker-3 (4 alike)`.
    pub(super) fn title(&self) -> String {
        match &self.titles[..] {
            [first, .., last] => {
                let last = last.split_once(' ').map_or(last.as_str(), |(_, name)| name);
                format!("{first} … {last} ({} alike)", self.titles.len())
            }
            titles => titles.concat(),
        }
    }
}

fn yaml(object: Option<&Value>) -> Result<String, String> {
    match object {
        Some(object) => write::yaml(&write::Readable(object)),
        None => Ok(String::new()),
    }
}

/// Returns the title without the index of a replica.
fn group_of(title: &str) -> &str {
    title.trim_end_matches(|c: char| c.is_ascii_digit())
}

/// Returns text with one mark in the place of each number.
fn masked(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '0'..='9' if masked.ends_with('0') => {}
            '0'..='9' => masked.push('0'),
            c => masked.push(c),
        }
    }
    masked
}

/// Returns the numbers of changed, added and removed objects as text.
pub(super) fn tally<'c>(changes: impl Iterator<Item = &'c ObjectChange> + Clone) -> String {
    let count = |change| -> usize {
        let of = changes.clone().filter(|c| c.change == change);
        of.map(|c| c.titles.len()).sum()
    };
    format!(
        "{} changed, {} added, {} removed",
        count(ChangeType::Changed),
        count(ChangeType::Added),
        count(ChangeType::Removed)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pods(count: usize, image: &str) -> Vec<Value> {
        let pod = |n| {
            let hosts: Vec<_> = (0..count).map(|n| format!("a-worker-{n}")).collect();
            json!({"kind": "Pod", "metadata": {"name": format!("a-worker-{n}")}, "spec": {"image": image, "hosts": hosts, "index": n}})
        };
        (0..count).map(pod).collect()
    }

    fn titles(old: &[Value], new: &[Value]) -> Vec<(String, ChangeType, Option<String>)> {
        let changes = changes(old, new).unwrap();
        changes
            .into_iter()
            .map(|c| (c.title(), c.change, c.like))
            .collect()
    }

    #[test]
    fn replicas_that_differ_in_numbers_only_are_one_group() {
        let (four, six) = (pods(4, "x"), pods(6, "x"));
        assert_eq!(titles(&four, &four), []);
        assert_eq!(
            titles(&four, &six),
            [
                (
                    "Pod a-worker-0 … a-worker-3 (4 alike)".to_owned(),
                    ChangeType::Changed,
                    None
                ),
                (
                    "Pod a-worker-4 … a-worker-5 (2 alike)".to_owned(),
                    ChangeType::Added,
                    Some("Pod a-worker-3".to_owned())
                ),
            ]
        );
        let removed = &titles(&six, &four)[1];
        assert_eq!(removed.0.as_str(), "Pod a-worker-4 … a-worker-5 (2 alike)");
        assert_eq!(removed.1, ChangeType::Removed);
    }

    #[test]
    fn a_replica_that_changes_in_another_way_stands_alone() {
        let old = pods(3, "x");
        let mut new = pods(3, "y");
        new[1]["spec"]["more"] = json!(true);
        let changed: Vec<_> = titles(&old, &new).into_iter().map(|(title, ..)| title).collect();
        assert_eq!(
            changed,
            ["Pod a-worker-0 … a-worker-2 (2 alike)", "Pod a-worker-1"]
        );
    }
}
