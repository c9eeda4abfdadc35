//! What was stored before: an operator may act on what it has not yet heard to be over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use training_job::memory::{Action, Change, Cluster, Object};

use crate::job;
use crate::kubelet;

/// The lives of all jobs and their children so far.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) jobs: BTreeMap<String, JobLife>,
    pub(crate) children: BTreeMap<String, ChildLife>,
}

/// A job, by its UID.
pub(crate) struct JobLife {
    /// The versions of it, and since when.
    versions: Vec<(u64, Arc<Object>)>,
    pub(crate) gone: Option<u64>,
    /// When somebody other than an operator last wrote its status.
    pub(crate) status_edited: Option<u64>,
}

/// A pod or service, by its UID.
pub(crate) struct ChildLife {
    pub(crate) plural: String,
    pub(crate) name: String,
    /// Its controller when it was made.
    pub(crate) owner: Option<String>,
    /// When that was last its controller, if it is not any more.
    pub(crate) orphaned: Option<u64>,
    pub(crate) attempt: u32,
    pub(crate) made: u64,
    pub(crate) succeeded: Option<u64>,
    /// Whether it ever did, also in a time that a backup has undone.
    pub(crate) ever_succeeded: bool,
    pub(crate) gone: Option<u64>,
}

impl JobLife {
    /// The versions that were stored at some time since then, the oldest first.
    pub(crate) fn since(&self, time: u64) -> impl Iterator<Item = &Value> {
        let later = self.versions.iter().position(|(since, _)| *since > time);
        let first = later.unwrap_or(self.versions.len()).saturating_sub(1);
        self.versions[first..].iter().map(|(_, object)| object.value())
    }

    /// The latest version.
    pub(crate) fn latest(&self) -> &Value {
        // A life begins with a version.
        self.versions
            .last()
            .map_or(&Value::Null, |(_, object)| object.value())
    }
}

impl Memory {
    /// The names of the job's pods that have ever ended well.
    pub(crate) fn successes(&self, job: &str) -> BTreeSet<&str> {
        let children = self.children.values();
        let ours = children.filter(|c| c.plural == "pods" && c.owner.as_deref() == Some(job));
        ours.filter(|c| c.ever_succeeded)
            .map(|c| c.name.as_str())
            .collect()
    }

    /// Enters a change.
    pub(crate) fn enter(&mut self, change: &Change, by_operator: bool, now: u64) {
        let gone = (change.action() == Action::Deleted).then_some(now);
        self.put(change.plural(), change.object(), gone, now);
        let object = change.object().value();
        let edited = change
            .previous()
            .is_some_and(|p| p.value()["status"] != object["status"]);
        if edited
            && !by_operator
            && let Some(uid) = object["metadata"]["uid"].as_str()
            && let Some(life) = self.jobs.get_mut(uid)
        {
            life.status_edited = Some(now);
        }
    }

    /// The cluster was set back to what it holds now.
    pub(crate) fn restored(&mut self, cluster: &Cluster, now: u64) {
        for life in self.jobs.values_mut() {
            life.gone.get_or_insert(now);
        }
        for life in self.children.values_mut() {
            life.gone.get_or_insert(now);
            life.succeeded = None;
        }
        for plural in job::PLURALS.into_iter().chain(["pods", "services"]) {
            for object in cluster.list(plural, None) {
                self.put(plural, &object, None, now);
            }
        }
    }

    fn put(&mut self, plural: &str, stored: &Arc<Object>, gone: Option<u64>, now: u64) {
        let object = stored.value();
        let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
        let uid = text("uid");
        if job::PLURALS.contains(&plural) {
            let life = self.jobs.entry(uid).or_insert_with(|| JobLife {
                versions: Vec::new(),
                gone: None,
                status_edited: None,
            });
            life.gone = gone;
            life.versions.push((now, stored.clone()));
        } else if matches!(plural, "pods" | "services") {
            let life = self.children.entry(uid).or_insert_with(|| ChildLife {
                plural: plural.to_owned(),
                name: text("name"),
                owner: job::controller(object).map(str::to_owned),
                orphaned: None,
                attempt: kubelet::attempt(object),
                made: now,
                succeeded: None,
                ever_succeeded: false,
                gone: None,
            });
            life.gone = gone;
            if job::controller(object) == life.owner.as_deref() {
                life.orphaned = None;
            } else {
                life.orphaned.get_or_insert(now);
            }
            if plural == "pods" && job::phase(object) == "Succeeded" {
                life.succeeded.get_or_insert(now);
                life.ever_succeeded = true;
            }
        }
    }
}
