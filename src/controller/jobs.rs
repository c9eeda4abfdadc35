//! The cache of one kind of jobs. Synchronous, like [`children`](super::children).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::Resource;

use crate::job::TrainingJob;
use crate::version::Version;

use super::children::Lists;
use super::stored::Stored;

/// A job's namespace and name.
pub(super) type JobName = (String, String);

/// All jobs of a kind.
pub(super) struct Jobs<J> {
    jobs: BTreeMap<JobName, Arc<Stored<J>>>,
    list: Option<List>,
    /// How many lists have begun.
    lists: Lists,
    /// Jobs of whose end an answer has told, at this version, and the watch not yet.
    absent: BTreeMap<JobName, Version>,
}

/// A list under way.
struct List {
    /// The jobs that it did not name yet.
    unlisted: BTreeSet<JobName>,
    /// The jobs that own writes were answered with meanwhile.
    answered: BTreeSet<JobName>,
    /// What is named now was so at this version.
    version: Version,
}

impl<J> Default for Jobs<J> {
    fn default() -> Self {
        Self {
            jobs: BTreeMap::new(),
            list: None,
            lists: Lists::default(),
            absent: BTreeMap::new(),
        }
    }
}

impl<J: TrainingJob> Jobs<J> {
    /// The job of this name.
    pub(super) fn get(&self, name: &JobName) -> Option<Arc<Stored<J>>> {
        self.jobs.get(name).cloned()
    }

    /// All that are held.
    #[cfg(feature = "testing")]
    pub(super) fn all(&self) -> impl Iterator<Item = (JobName, &Arc<Stored<J>>)> {
        self.jobs.iter().map(|(name, job)| (name.clone(), job))
    }

    /// A list begins.
    pub(super) fn list_begins(&mut self) {
        self.lists.begin();
        self.absent.clear();
        self.list = Some(List {
            unlisted: self.jobs.keys().cloned().collect(),
            answered: BTreeSet::new(),
            version: Version::default(),
        });
    }

    /// A page of the list has come, of this version.
    pub(super) fn page(&mut self, version: Version) {
        if let Some(list) = &mut self.list {
            list.version = version;
        }
    }

    /// The list names a job. Returns the UID of a namesake that it replaces.
    ///
    /// The list is newer than all that was known before it began, even if versions have gone back
    /// with a backup of the server. An answer that came since is newer if its version is.
    pub(super) fn listed(&mut self, job: Stored<J>) -> Option<String> {
        let name = name(&job);
        let held = self.jobs.get(&name).map(|held| Version::of(held.meta()));
        if let Some(list) = &mut self.list {
            list.unlisted.remove(&name);
            let answered = list.answered.contains(&name) && held > Some(list.version);
            if answered && held > Some(Version::of(job.meta())) {
                return None;
            }
        }
        self.put(job)
    }

    /// The list is complete. Returns the names and UIDs of the jobs that are gone.
    pub(super) fn list_ends(&mut self) -> Vec<(JobName, String)> {
        let gone = self.list.take().map(|list| list.unlisted).unwrap_or_default();
        gone.into_iter()
            .filter_map(|name| Some((name.clone(), uid(&*self.jobs.remove(&name)?))))
            .collect()
    }

    /// The watch says that a job is new or has changed. Returns the UID of a namesake that it replaces.
    pub(super) fn applied(&mut self, job: Stored<J>) -> Option<String> {
        let name = name(&job);
        let ended = self
            .absent
            .get(&name)
            .is_some_and(|at| *at >= Version::of(job.meta()));
        if ended || self.holds_newer(&name, &job) {
            return None;
        }
        self.put(job)
    }

    /// The watch says that a job is gone. Returns its UID.
    pub(super) fn deleted(&mut self, job: &Stored<J>) -> String {
        let name = name(job);
        self.absent.remove(&name);
        let same = self.jobs.get(&name).is_some_and(|held| uid(&**held) == uid(job));
        // An answer that brought its namesake was faster than the watch.
        if same || !self.holds_newer(&name, job) {
            self.jobs.remove(&name);
        }
        uid(job)
    }

    /// How many lists have begun, to be told with the answer to a call that is sent now.
    pub(super) fn lists(&self) -> Lists {
        self.lists
    }

    /// The server has answered an own write with this job, which was sent when so many lists had begun. What has
    /// begun since knows better, as for [`Children::answered`](super::children::Children::answered). A job that is
    /// not held any more has been deleted since: nothing is written to one that was not held.
    pub(super) fn answered(&mut self, job: Stored<J>, sent: Lists) {
        if self.lists != sent {
            return;
        }
        let name = name(&job);
        let held = self.jobs.get(&name).is_some_and(|held| uid(&**held) == uid(&job));
        if !held || self.holds_newer(&name, &job) {
            return;
        }
        if let Some(list) = &mut self.list {
            list.answered.insert(name);
        }
        self.put(job);
    }

    /// The server was asked for a job, held as `was`, when so many lists had begun, and has this one. Returns the UID of
    /// a namesake that it replaces.
    pub(super) fn reread(&mut self, was: &Arc<Stored<J>>, sent: Lists, job: Stored<J>) -> Option<String> {
        let name = name(&job);
        if self.lists != sent || !self.holds(was) || self.holds_newer(&name, &job) {
            return None;
        }
        if let Some(list) = &mut self.list {
            list.answered.insert(name);
        }
        self.put(job)
    }

    /// The server was asked for a job, held as `was`, when so many lists had begun, and had none at this version.
    /// Returns whether it is forgotten.
    pub(super) fn absent(&mut self, was: &Arc<Stored<J>>, sent: Lists, version: Version) -> bool {
        let gone = self.lists == sent && self.holds(was) && version > Version::of(was.meta());
        if gone {
            self.jobs.remove(&name(was));
            // Until the watch has told so, it may tell of what was before.
            self.absent.insert(name(was), version);
        }
        gone
    }

    /// Whether just this is held.
    pub(super) fn holds(&self, job: &Arc<Stored<J>>) -> bool {
        let held = self.jobs.get(&name(job));
        held.is_some_and(|held| Arc::ptr_eq(held, job))
    }

    fn holds_newer(&self, name: &JobName, job: &Stored<J>) -> bool {
        let held = self.jobs.get(name);
        held.is_some_and(|held| Version::of(held.meta()) > Version::of(job.meta()))
    }

    fn put(&mut self, job: Stored<J>) -> Option<String> {
        let new = uid(&job);
        let old = self.jobs.insert(name(&job), Arc::new(job))?;
        Some(uid(&*old)).filter(|old| *old != new)
    }
}

pub(super) fn name<J: TrainingJob>(job: &Stored<J>) -> JobName {
    let meta = job.meta();
    (
        meta.namespace.clone().unwrap_or_default(),
        meta.name.clone().unwrap_or_default(),
    )
}

pub(super) fn uid<J: TrainingJob>(job: &Stored<J>) -> String {
    job.meta().uid.clone().unwrap_or_default()
}
