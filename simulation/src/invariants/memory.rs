//! What was stored before: an operator may act on what it has not yet heard to be over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use kube_memory::{Action, Change, Cluster, Object};
use serde_json::Value;

use crate::job::{self, Json};
use crate::kubelet;

/// The lives of all jobs and their children so far.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) jobs: BTreeMap<String, JobLife>,
    pub(crate) children: BTreeMap<String, ChildLife>,
    /// The UIDs of all children that ever had this controller; those without one are under no name.
    of_controller: BTreeMap<String, BTreeSet<String>>,
}

/// A job, by its UID.
pub(crate) struct JobLife {
    versions: Vec<Version>,
    pub(crate) gone: Option<u64>,
    /// When somebody other than an operator last wrote its status.
    pub(crate) status_edited: Option<u64>,
}

/// A version of a job.
pub(crate) struct Version {
    since: u64,
    object: Arc<Object>,
    /// What its spec asks for, once somebody wants to know; shared with the versions of the same spec.
    wish: Arc<OnceLock<Wish>>,
}

/// What a spec asks for.
struct Wish {
    roles: BTreeMap<String, i64>,
    names: BTreeSet<String>,
    /// Whether there are to be any pods at all.
    runs: bool,
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
    pub(crate) fn versions_since(&self, time: u64) -> &[Version] {
        let first = self.versions.partition_point(|version| version.since <= time);
        &self.versions[first.saturating_sub(1)..]
    }

    /// The same as they were stored.
    pub(crate) fn since(&self, time: u64) -> impl Iterator<Item = &Object> {
        self.versions_since(time).iter().map(Version::job)
    }

    /// The latest version; a life begins with one.
    pub(crate) fn latest(&self) -> Option<&Object> {
        self.versions.last().map(Version::job)
    }

    fn is_now(&mut self, object: &Arc<Object>, since: u64) {
        let same_spec = |before: &&Version| before.job()["spec"] == object["spec"];
        let wish = self.versions.last().filter(same_spec).map(|v| v.wish.clone());
        self.versions.push(Version {
            since,
            object: object.clone(),
            wish: wish.unwrap_or_default(),
        });
    }
}

impl Version {
    pub(crate) fn job(&self) -> &Object {
        &self.object
    }

    /// Whether its spec asks for a child of this name.
    pub(crate) fn asks_for(&self, child: &str) -> bool {
        let wish = self.wish();
        wish.runs && wish.names.contains(child)
    }

    /// Whether a child of this name belongs to it, be it to run or not.
    pub(crate) fn names(&self, child: &str) -> bool {
        self.wish().names.contains(child)
    }

    /// How many replicas of this role its spec asks for.
    pub(crate) fn replicas(&self, role: &str) -> Option<i64> {
        self.wish().roles.get(role).copied()
    }

    fn wish(&self) -> &Wish {
        self.wish.get_or_init(|| Wish {
            roles: job::roles(self.job()),
            names: job::names(self.job()),
            runs: !job::is_suspended(self.job()) && !job::is_invalid(self.job()),
        })
    }
}

impl Memory {
    /// The names of the job's pods that have ever ended well.
    pub(crate) fn successes(&self, job: &str) -> BTreeSet<&str> {
        let made_for_it = |child: &&ChildLife| child.owner.as_deref() == Some(job);
        let pods = self.children_of(Some(job)).map(|(_, child)| child);
        pods.filter(|c| c.plural == "pods" && c.ever_succeeded)
            .filter(made_for_it)
            .map(|c| c.name.as_str())
            .collect()
    }

    /// All children that ever had this controller, with their UIDs.
    pub(crate) fn children_of(&self, controller: Option<&str>) -> impl Iterator<Item = (&str, &ChildLife)> {
        let uids = self.of_controller.get(controller.unwrap_or_default());
        let known = |uid| self.children.get_key_value::<String>(uid);
        uids.into_iter()
            .flatten()
            .filter_map(known)
            .map(|(uid, child)| (uid.as_str(), child))
    }

    /// Enters a change.
    pub(crate) fn enter(&mut self, change: &Change, by_operator: bool, now: u64) {
        let gone = (change.action() == Action::Deleted).then_some(now);
        self.put(change.plural(), change.object(), gone, now);
        let object = change.object();
        let edited = || {
            let previous = change.previous();
            previous.is_some_and(|previous| previous["status"] != object["status"])
        };
        if !by_operator
            && job::PLURALS.contains(&change.plural())
            && edited()
            && let Some(uid) = object.meta("uid").and_then(Value::as_str)
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
        let object = &**stored;
        let text = |key: &str| Json::meta(object, key).as_str().unwrap_or_default().to_owned();
        let uid = text("uid");
        if job::PLURALS.contains(&plural) {
            let life = self.jobs.entry(uid).or_insert_with(|| JobLife {
                versions: Vec::new(),
                gone: None,
                status_edited: None,
            });
            life.gone = gone;
            life.is_now(stored, now);
        } else if matches!(plural, "pods" | "services") {
            let controller = job::controller(object);
            let known = self.of_controller.get(controller.unwrap_or_default());
            if !known.is_some_and(|uids| uids.contains(&uid)) {
                let controller = controller.unwrap_or_default().to_owned();
                self.of_controller
                    .entry(controller)
                    .or_default()
                    .insert(uid.clone());
            }
            let life = self.children.entry(uid).or_insert_with(|| ChildLife {
                plural: plural.to_owned(),
                name: text("name"),
                owner: controller.map(str::to_owned),
                orphaned: None,
                attempt: kubelet::attempt(object),
                made: now,
                succeeded: None,
                ever_succeeded: false,
                gone: None,
            });
            life.gone = gone;
            if controller == life.owner.as_deref() {
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
