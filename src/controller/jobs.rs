//! The cache of one kind of jobs. Synchronous, like [`children`](super::children).

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Resource;

use crate::job::TrainingJob;
use kube_follow::Version;

use super::lists::{Lists, ObjectName, Sent};
use super::stored::Stored;

/// All jobs of a kind.
pub(super) struct Jobs<J> {
    jobs: BTreeMap<ObjectName, Arc<Stored<J>>>,
    lists: Lists,
    /// Jobs that an answer has told to be gone, at this version, and the watch not yet.
    absent: BTreeMap<ObjectName, Version>,
}

/// What a job is found to be that was asked for.
pub(super) enum Found<J> {
    /// This is held now.
    Held(Arc<Stored<J>>),
    /// Nothing is held now, or what replaces it. The UID of what was held, if nobody was told so before.
    Gone(Option<String>),
    /// A list has begun since: it is to be asked for once more.
    Overtaken,
}

impl<J> Default for Jobs<J> {
    fn default() -> Self {
        Self {
            jobs: BTreeMap::new(),
            lists: Lists::default(),
            absent: BTreeMap::new(),
        }
    }
}

impl<J: TrainingJob> Jobs<J> {
    /// The job of this name.
    pub(super) fn get(&self, name: &ObjectName) -> Option<Arc<Stored<J>>> {
        self.jobs.get(name).cloned()
    }

    /// All that are held.
    #[cfg(any(test, feature = "__fuzzing"))]
    pub(super) fn all(&self) -> impl Iterator<Item = (ObjectName, &Arc<Stored<J>>)> {
        self.jobs.iter().map(|(name, job)| (name.clone(), job))
    }

    /// A list begins.
    pub(super) fn list_begins(&mut self) {
        self.absent.clear();
        self.lists.begin(self.jobs.keys().cloned());
    }

    /// A page of the list has come, of this version.
    pub(super) fn page(&mut self, version: Version) {
        self.lists.page(version);
    }

    /// The list names a job. Returns the UID of a namesake that it replaces.
    pub(super) fn listed(&mut self, job: Stored<J>) -> Option<String> {
        let name = name(&job);
        let known = self.known(&name);
        if self.lists.name(&name, Version::of(job.meta()), known) {
            return None;
        }
        self.put(job)
    }

    /// The list is complete. Returns the names and UIDs of the jobs that are gone.
    pub(super) fn list_ends(&mut self) -> Vec<(ObjectName, String)> {
        let mut lists = std::mem::take(&mut self.lists);
        let gone = lists.end(|name| self.known(name));
        self.lists = lists;
        gone.into_iter()
            .filter_map(|name| Some((name.clone(), uid(&*self.jobs.remove(&name)?))))
            .collect()
    }

    /// The watch has told everything up to this version.
    pub(super) fn passed(&mut self, version: Version) {
        self.lists.passed(version);
        self.absent.retain(|_, at| *at > version);
    }

    /// The watch says that a job is new or has changed. Returns the UID of a namesake that it replaces.
    pub(super) fn applied(&mut self, job: Stored<J>) -> Option<String> {
        let name = name(&job);
        self.passed(Version::of(job.meta()));
        if self.known(&name) > Some(Version::of(job.meta())) {
            return None;
        }
        self.put_next(job)
    }

    /// The watch says that a job is gone. Returns its UID.
    pub(super) fn deleted(&mut self, job: &Stored<J>) -> String {
        let name = name(job);
        self.passed(Version::of(job.meta()));
        let same = self.jobs.get(&name).is_some_and(|held| uid(&**held) == uid(job));
        // An answer that brought its namesake was faster than the watch.
        if same || self.known(&name) <= Some(Version::of(job.meta())) {
            self.jobs.remove(&name);
        }
        uid(job)
    }

    /// To be told with the answer to a call that is sent now.
    pub(super) fn sent(&self) -> Sent {
        self.lists.sent()
    }

    /// The server has answered an own write with this job. A job that is not held any more has been deleted since:
    /// nothing is written to one that was not held. Returns whether it is known what is newer, the answer or what is
    /// held.
    pub(super) fn answered(&mut self, job: Stored<J>, sent: Sent) -> bool {
        let (name, version) = (name(&job), Version::of(job.meta()));
        let held = self.jobs.get(&name).is_some_and(|held| uid(&**held) == uid(&job));
        if held && self.known(&name) <= Some(version) && self.lists.answer(&name, version, sent) {
            self.put_next(job);
        }
        !self.lists.overtook(sent)
    }

    /// The server was asked for a job, held as `was`, and has this one at this version, or none.
    pub(super) fn asked(
        &mut self,
        was: &Arc<Stored<J>>,
        sent: Sent,
        job: Option<Stored<J>>,
        version: Version,
    ) -> Found<J> {
        if self.lists.overtook(sent) {
            return Found::Overtaken;
        }
        let name = name(was);
        let at = job.as_ref().map_or(version, |job| Version::of(job.meta()));
        let mut gone = None;
        // What has come meanwhile is as new.
        if self.holds(was) && self.known(&name) <= Some(at) {
            self.lists.answer(&name, at, sent);
            gone = match job {
                Some(job) => self.put(job),
                None => {
                    // Until the watch has told so, it may tell of what was before.
                    self.absent.insert(name.clone(), at);
                    self.jobs.remove(&name).map(|job| uid(&*job))
                }
            };
        }
        match self.get(&name) {
            Some(held) if uid(&*held) == uid(&**was) => Found::Held(held),
            _ => Found::Gone(gone),
        }
    }

    /// Whether just this is held.
    fn holds(&self, job: &Arc<Stored<J>>) -> bool {
        let held = self.jobs.get(&name(job));
        held.is_some_and(|held| Arc::ptr_eq(held, job))
    }

    /// At which version it was known last that the job is there, or is not.
    fn known(&self, name: &ObjectName) -> Option<Version> {
        let held = self.jobs.get(name).map(|held| Version::of(held.meta()));
        held.or_else(|| self.absent.get(name).copied())
    }

    /// Puts the version that comes after the one held, of the same time.
    fn put_next(&mut self, job: Stored<J>) -> Option<String> {
        if let Some(held) = self.jobs.get(&name(&job)) {
            job.inherit(held);
        }
        self.put(job)
    }

    fn put(&mut self, job: Stored<J>) -> Option<String> {
        let new = uid(&job);
        let old = self.jobs.insert(name(&job), Arc::new(job))?;
        Some(uid(&*old)).filter(|old| *old != new)
    }
}

pub(super) fn name<J: TrainingJob>(job: &Stored<J>) -> ObjectName {
    let meta = job.meta();
    (
        meta.namespace.clone().unwrap_or_default(),
        meta.name.clone().unwrap_or_default(),
    )
}

pub(super) fn uid<J: TrainingJob>(job: &Stored<J>) -> String {
    job.meta().uid.clone().unwrap_or_default()
}
