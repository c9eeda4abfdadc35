//! Removes fields that are in no schema. Former operators ignored them.

use std::collections::BTreeSet;

use kube_manifest::{Content, Node};
use kube_schema::{field, item};
use training_job::validate::UNKNOWN_FIELD;
use training_job_review::check::DocumentCheck;

use super::log::{Log, is_unknown};
use super::tree::{child, items};

/// Removes fields that are in no schema from a job, or from the jobs of a list.
pub(super) fn remove(node: &mut Node, path: &str, log: &mut Log<'_>, check: &mut DocumentCheck) {
    let is_list = node.text("kind").is_some_and(|kind| kind.ends_with("List"));
    if is_list && let Some(all) = child(node, "items").and_then(items) {
        for (n, job) in all.iter_mut().enumerate() {
            remove(job, &format!("{path}items[{n}]."), log, check);
        }
        return;
    }
    let errors = check.errors(log.file(), node);
    let unknown = errors.into_iter().filter(is_unknown);
    let unknown: BTreeSet<String> = unknown.map(|error| error.path).collect();
    if !unknown.is_empty() {
        path.clone_into(&mut log.prefix);
        remove_at(node, "", &unknown, log);
    }
}

fn remove_at(node: &mut Node, path: &str, unknown: &BTreeSet<String>, log: &mut Log<'_>) {
    match &mut node.content {
        Content::Scalar(_) => {}
        Content::List(items) => {
            for (n, node) in items.iter_mut().enumerate() {
                remove_at(node, &item(path, n), unknown, log);
            }
        }
        Content::Map(entries) => {
            entries.retain(|entry| {
                let path = field(path, &entry.key);
                let goes = unknown.contains(&path);
                if goes {
                    log.unsupported(entry.at, &path, UNKNOWN_FIELD, "remove it");
                }
                !goes
            });
            for entry in entries {
                let path = field(path, &entry.key);
                remove_at(&mut entry.value, &path, unknown, log);
            }
        }
    }
}
