//! Removes fields that clusters add to exported objects and fields that templates leave behind. They have no effect
//! in a manifest.

use kube_manifest::{Content, Node};
use kube_schema::{field, item};

use super::log::Log;
use super::tree::{below, child, entries, is_null, items, take, text};

const SET_BY_API_SERVER: &str = "removed: the API server sets it";

/// Fields of the metadata, and the reason why they are removed.
const METADATA: [(&str, &str); 8] = [
    ("clusterName", "removed: Kubernetes 1.24 dropped this field"),
    ("creationTimestamp", SET_BY_API_SERVER),
    ("generation", SET_BY_API_SERVER),
    ("initializers", "removed: Kubernetes 1.16 dropped this field"),
    ("managedFields", SET_BY_API_SERVER),
    ("resourceVersion", SET_BY_API_SERVER),
    ("selfLink", SET_BY_API_SERVER),
    ("uid", SET_BY_API_SERVER),
];

/// Contains the whole object as it was last applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The finalizer that the paddle-operator sets on a job. Only that operator removes it.
const FOREIGN_FINALIZER: &str = "finalizers.paddlepaddle.org";

/// Removes fields without effect from a job.
pub(super) fn remove(job: &mut Node, log: &mut Log<'_>) {
    if let Some(status) = take(job, "status") {
        log.note(status.at, "status", "removed: the operator writes it");
    }
    if let Some(metadata) = child(job, "metadata") {
        for (key, why) in METADATA {
            if let Some(gone) = take(metadata, key) {
                log.note(gone.at, &format!("metadata.{key}"), why);
            }
        }
        finalizers(metadata, log);
    }
    if let Some(annotations) = below(job, &["metadata", "annotations"])
        && let Some(gone) = take(annotations, LAST_APPLIED)
    {
        let path = field("metadata.annotations", LAST_APPLIED);
        log.note(gone.at, &path, "removed: kubectl writes it");
    }
    nulls(job, "", log);
    if let Some(spec) = child(job, "spec") {
        empty_fields(spec, "spec", log);
    }
}

fn finalizers(metadata: &mut Node, log: &mut Log<'_>) {
    let Some(all) = child(metadata, "finalizers").and_then(items) else {
        return;
    };
    let found = all.iter().position(|name| text(name) == Some(FOREIGN_FINALIZER));
    let Some(found) = found else { return };
    let gone = all.remove(found);
    let is_empty = all.is_empty();
    let what = "removed: only the paddle-operator removes this finalizer; a job that keeps it could never be deleted";
    log.note(gone.at, &item("metadata.finalizers", found), what);
    if is_empty {
        take(metadata, "finalizers");
    }
}

/// Removes fields without a value, as the API server does.
fn nulls(node: &mut Node, path: &str, log: &mut Log<'_>) {
    match &mut node.content {
        Content::Scalar(_) => {}
        Content::List(items) => {
            for (n, node) in items.iter_mut().enumerate() {
                nulls(node, &item(path, n), log);
            }
        }
        Content::Map(entries) => {
            entries.retain(|entry| {
                let goes = is_null(&entry.value);
                if goes {
                    let what = "removed: the API server drops null values";
                    log.note(entry.at, &field(path, &entry.key), what);
                }
                !goes
            });
            for entry in entries {
                nulls(&mut entry.value, &field(path, &entry.key), log);
            }
        }
    }
}

/// Removes `serviceType: ""`, which no version allows, and `apiVersion`, `kind` and `status` from pod templates.
fn empty_fields(node: &mut Node, path: &str, log: &mut Log<'_>) {
    if let Some(list) = items(node) {
        for (n, node) in list.iter_mut().enumerate() {
            empty_fields(node, &item(path, n), log);
        }
        return;
    }
    if node.text("serviceType") == Some("")
        && let Some(gone) = take(node, "serviceType")
    {
        log.note(gone.at, &field(path, "serviceType"), "removed: it is empty");
    }
    for entry in entries(node).into_iter().flatten() {
        let path = field(path, &entry.key);
        if entry.key != "template" {
            empty_fields(&mut entry.value, &path, log);
            continue;
        }
        for key in ["apiVersion", "kind", "status"] {
            if let Some(gone) = take(&mut entry.value, key) {
                let what = "removed: a pod template has no such field";
                log.note(gone.at, &field(&path, key), what);
            }
        }
    }
}
