//! The cache of one kind of jobs. Synchronous, like [`children`](super::children).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::Resource;

use crate::job::TrainingJob;

use super::stored::Stored;
use super::version::Version;

/// A job's namespace and name.
pub(super) type JobName = (String, String);

/// All jobs of a kind.
pub(super) struct Jobs<J> {
    jobs: BTreeMap<JobName, Arc<Stored<J>>>,
    seen: Version,
    unlisted: Option<BTreeSet<JobName>>,
}

impl<J> Default for Jobs<J> {
    fn default() -> Self {
        Self {
            jobs: BTreeMap::new(),
            seen: Version::default(),
            unlisted: None,
        }
    }
}

impl<J: TrainingJob> Jobs<J> {
    /// The job of this name.
    pub(super) fn get(&self, name: &JobName) -> Option<Arc<Stored<J>>> {
        self.jobs.get(name).cloned()
    }

    /// A list begins.
    pub(super) fn list_begins(&mut self) {
        self.unlisted = Some(self.jobs.keys().cloned().collect());
        self.seen = Version::default();
    }

    /// The list names a job. Returns the UID of a namesake that it replaces.
    pub(super) fn listed(&mut self, job: Stored<J>) -> Option<String> {
        if let Some(unlisted) = &mut self.unlisted {
            unlisted.remove(&name(&job));
        }
        self.put(job)
    }

    /// The list is complete. Returns the names and UIDs of the jobs that are gone.
    pub(super) fn list_ends(&mut self) -> Vec<(JobName, String)> {
        let gone = self.unlisted.take().unwrap_or_default();
        gone.into_iter()
            .filter_map(|name| Some((name.clone(), uid(&*self.jobs.remove(&name)?))))
            .collect()
    }

    /// The watch says that a job is new or has changed. Returns the UID of a namesake that it replaces.
    pub(super) fn applied(&mut self, job: Stored<J>) -> Option<String> {
        let version = Version::of(job.meta());
        self.seen = self.seen.max(version);
        let held = self.jobs.get(&name(&job));
        if held.is_some_and(|held| Version::of(held.meta()) > version) {
            return None;
        }
        self.put(job)
    }

    /// The watch says that a job is gone. Returns its UID.
    pub(super) fn deleted(&mut self, job: &Stored<J>) -> String {
        self.seen = self.seen.max(Version::of(job.meta()));
        self.jobs.remove(&name(job));
        uid(job)
    }

    /// The server has answered an own write with this job.
    pub(super) fn answered(&mut self, job: Stored<J>) {
        let version = Version::of(job.meta());
        let name = name(&job);
        match self.jobs.get(&name) {
            Some(held) if Version::of(held.meta()) >= version => {}
            // The watch is past this version, and has told of its deletion.
            None if version <= self.seen => {}
            _ => {
                if let Some(unlisted) = &mut self.unlisted {
                    unlisted.remove(&name);
                }
                self.put(job);
            }
        }
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
