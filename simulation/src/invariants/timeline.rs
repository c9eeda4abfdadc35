//! The states of all jobs and children so far. An operator may act on an older state until its watches deliver the
//! new one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use kube_memory::{Action, Change, Cluster, Object};
use serde_json::Value;

use crate::world::START_SECOND;
use crate::world::job;
use crate::world::json::Json;
use crate::world::pod;

/// The states of all jobs and their children so far.
#[derive(Default)]
pub(crate) struct Timeline {
    pub(crate) jobs: BTreeMap<String, JobTimeline>,
    pub(crate) children: BTreeMap<String, ChildTimeline>,
    /// True if the operators' clocks were ever set ahead.
    pub(crate) clocks_were_set: bool,
    /// The last time when there was a quota, or the maximum time while there is one.
    pub(crate) quota_until: Option<u64>,
    /// The UIDs of all children that ever had this controller. An empty UID stands for no controller.
    by_controller: BTreeMap<String, BTreeSet<String>>,
}

/// The history of a job, stored by its UID.
pub(crate) struct JobTimeline {
    versions: Vec<JobVersion>,
    pub(crate) deleted: Option<u64>,
    /// The time of the last status write by a writer other than an operator.
    pub(crate) status_edited: Option<u64>,
}

/// A state of a job.
pub(crate) struct JobVersion {
    since: u64,
    object: Arc<Object>,
    /// The children that its spec requests, computed on first use. Versions with the same spec share it.
    requested: Arc<OnceLock<Requested>>,
}

/// The roles and children that a spec requests.
struct Requested {
    roles: BTreeMap<String, i64>,
    pods: BTreeSet<String>,
    services: BTreeSet<String>,
    /// True if the job is neither suspended nor invalid, and no other controller manages it.
    runs: bool,
}

/// The history of a child, stored by its UID.
pub(crate) struct ChildTimeline {
    pub(crate) plural: String,
    pub(crate) name: String,
    /// The UID of its controller at its creation.
    pub(crate) owner: Option<String>,
    /// The time when it lost that controller.
    pub(crate) orphaned: Option<u64>,
    pub(crate) attempt: u32,
    pub(crate) created: u64,
    pub(crate) succeeded: Option<u64>,
    /// The time when it was first observed as succeeded or failed.
    pub(crate) ended: Option<u64>,
    /// The time at which the group's admission by its scheduler last ended, or the maximum time while it is admitted.
    pub(crate) let_in_until: Option<u64>,
    /// True for a pod that was deleted or disrupted while it ran, whatever the clock of its node.
    pub(crate) was_taken_away: bool,
    /// True for a pod that ever ran or ended.
    pub(crate) started: Option<u64>,
    /// True if it ever succeeded, even if a restore has undone that.
    pub(crate) ever_succeeded: bool,
    pub(crate) deleted: Option<u64>,
}

impl JobTimeline {
    /// Returns the version that was current at `time` and all later versions, the oldest first.
    pub(crate) fn versions_since(&self, time: u64) -> &[JobVersion] {
        let first = self.versions.partition_point(|version| version.since <= time);
        &self.versions[first.saturating_sub(1)..]
    }

    /// Returns the objects of [`versions_since`](Self::versions_since).
    pub(crate) fn objects_since(&self, time: u64) -> impl Iterator<Item = &Object> {
        self.versions_since(time).iter().map(JobVersion::job)
    }

    /// Returns the time of the end that its status has, or that of the first version with an end if that is earlier. The
    /// status may have been stored later.
    pub(crate) fn ended(&self) -> Option<u64> {
        let mut versions = self.versions.iter();
        let first = versions.find(|version| job::end(version.job()).is_some())?;
        let time = first.job()["status"]["completionTime"].as_str();
        let time = time.and_then(|time| time.parse::<Timestamp>().ok());
        let second = time.map(|time| time.as_second() - START_SECOND);
        let millis = second.and_then(|second| Some(u64::try_from(second).ok()? * 1_000));
        Some(millis.map_or(first.since, |millis| millis.min(first.since)))
    }

    /// Returns the latest version.
    pub(crate) fn latest(&self) -> Option<&Object> {
        self.versions.last().map(JobVersion::job)
    }

    fn add_version(&mut self, object: &Arc<Object>, since: u64) {
        let same_spec = |before: &&JobVersion| before.job()["spec"] == object["spec"];
        let requested = self
            .versions
            .last()
            .filter(same_spec)
            .map(|v| v.requested.clone());
        self.versions.push(JobVersion {
            since,
            object: object.clone(),
            requested: requested.unwrap_or_default(),
        });
    }
}

impl JobVersion {
    pub(crate) fn job(&self) -> &Object {
        &self.object
    }

    /// Returns true if the job is to run and its spec may request a child of this name.
    pub(crate) fn asks_for(&self, plural: &str, child: &str) -> bool {
        self.requested().runs && self.names(plural, child)
    }

    /// Returns true if a child of the job has this name, even if the job is not to run.
    pub(crate) fn names(&self, plural: &str, child: &str) -> bool {
        match plural {
            "pods" => self.requested().pods.contains(child),
            "services" => self.requested().services.contains(child),
            // The names of shared environments depend on their content, which only the operator determines.
            _ => {
                let own = job::object_name(self.job(), plural);
                own.as_deref() == Some(child)
                    || plural == "configmaps" && job::is_shared_environment(self.job(), child)
            }
        }
    }

    /// Returns the number of replicas of this role in its spec.
    pub(crate) fn replicas(&self, role: &str) -> Option<i64> {
        self.requested().roles.get(role).copied()
    }

    fn requested(&self) -> &Requested {
        self.requested.get_or_init(|| Requested {
            roles: job::roles(self.job()),
            pods: job::names(self.job()),
            services: job::service_names(self.job()),
            runs: !job::is_suspended(self.job())
                && !job::is_left_alone(self.job())
                && !job::is_invalid(self.job()),
        })
    }
}

impl Timeline {
    /// Returns the names of the job's pods that ever succeeded.
    pub(crate) fn successes(&self, job: &str) -> BTreeSet<&str> {
        let created_for_it = |child: &&ChildTimeline| child.owner.as_deref() == Some(job);
        let pods = self.children_of(Some(job)).map(|(_, child)| child);
        pods.filter(|c| c.plural == "pods" && c.ever_succeeded)
            .filter(created_for_it)
            .map(|c| c.name.as_str())
            .collect()
    }

    /// Returns true if a writer other than an operator ever wrote the job's status.
    pub(crate) fn is_edited(&self, job: &str) -> bool {
        self.jobs
            .get(job)
            .is_some_and(|job_timeline| job_timeline.status_edited.is_some())
    }

    /// Returns all children that ever had this controller, with their UIDs.
    pub(crate) fn children_of(
        &self,
        controller: Option<&str>,
    ) -> impl Iterator<Item = (&str, &ChildTimeline)> {
        let uids = self.by_controller.get(controller.unwrap_or_default());
        let known = |uid| self.children.get_key_value::<String>(uid);
        uids.into_iter()
            .flatten()
            .filter_map(known)
            .map(|(uid, child)| (uid.as_str(), child))
    }

    pub(crate) fn record(&mut self, change: &Change, by_operator: bool, now: u64) {
        let deleted = (change.action() == Action::Deleted).then_some(now);
        self.put(change.plural(), change.object(), deleted, now);
        if change.plural() == "resourcequotas" {
            self.quota_until = deleted.or(Some(u64::MAX));
        }
        let object = change.object();
        let edited = || {
            let previous = change.previous();
            previous.is_some_and(|previous| previous["status"] != object["status"])
        };
        if !by_operator
            && job::PLURALS.contains(&change.plural())
            && edited()
            && let Some(uid) = object.meta("uid").and_then(Value::as_str)
            && let Some(timeline) = self.jobs.get_mut(uid)
        {
            timeline.status_edited = Some(now);
        }
    }

    /// Adjusts the timeline after the cluster was restored to its current content.
    pub(crate) fn on_restored(&mut self, cluster: &Cluster, now: u64) {
        for timeline in self.jobs.values_mut() {
            timeline.deleted.get_or_insert(now);
        }
        for timeline in self.children.values_mut() {
            timeline.deleted.get_or_insert(now);
            timeline.succeeded = None;
            timeline.ended = None;
            timeline.was_taken_away = false;
        }
        for plural in job::PLURALS.into_iter().chain(job::CHILDREN) {
            for object in cluster.list(plural, None) {
                self.put(plural, &object, None, now);
            }
        }
    }

    fn put(&mut self, plural: &str, stored: &Arc<Object>, deleted: Option<u64>, now: u64) {
        let object = &**stored;
        let text = |key: &str| Json::meta(object, key).as_str().unwrap_or_default().to_owned();
        let uid = text("uid");
        if job::PLURALS.contains(&plural) {
            let timeline = self.jobs.entry(uid).or_insert_with(|| JobTimeline {
                versions: Vec::new(),
                deleted: None,
                status_edited: None,
            });
            timeline.deleted = deleted;
            timeline.add_version(stored, now);
        } else if job::CHILDREN.contains(&plural) {
            let controller = job::controller(object);
            let known = self.by_controller.get(controller.unwrap_or_default());
            if !known.is_some_and(|uids| uids.contains(&uid)) {
                let controller = controller.unwrap_or_default().to_owned();
                self.by_controller
                    .entry(controller)
                    .or_default()
                    .insert(uid.clone());
            }
            let timeline = self.children.entry(uid).or_insert_with(|| ChildTimeline {
                plural: plural.to_owned(),
                name: text("name"),
                owner: controller.map(str::to_owned),
                orphaned: None,
                attempt: pod::attempt(object),
                created: now,
                succeeded: None,
                ended: None,
                let_in_until: None,
                was_taken_away: false,
                started: None,
                ever_succeeded: false,
                deleted: None,
            });
            timeline.deleted = deleted;
            if controller == timeline.owner.as_deref() {
                timeline.orphaned = None;
            } else {
                timeline.orphaned.get_or_insert(now);
            }
            if plural == "pods" && pod::has_ended(object) {
                timeline.ended.get_or_insert(now);
            }
            if plural == job::GROUPS && deleted.is_none() && is_let_in(object) {
                timeline.let_in_until = Some(u64::MAX);
            } else if let Some(until) = &mut timeline.let_in_until {
                *until = now.min(*until);
            }
            if plural == "pods" && pod::phase(object) != "Pending" {
                timeline.started.get_or_insert(now);
            }
            timeline.was_taken_away |= plural == "pods" && pod::is_going(object);
            if plural == "pods" && pod::has_done_its_work(object) && !timeline.was_taken_away {
                timeline.succeeded.get_or_insert(now);
                timeline.ever_succeeded = true;
            }
        }
    }
}

/// Returns true if Volcano has admitted the group.
fn is_let_in(group: &Object) -> bool {
    let phase = group["status"]["phase"].as_str().unwrap_or_default();
    !matches!(phase, "" | "Pending")
}
