//! The cache of the jobs of one kind.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock, Weak};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_follow::Version;
use parking_lot::Mutex;
use training_job::job::Kind;

use crate::metrics::{CountedJob, Metrics};

use super::list_epoch::{ListEpoch, ListTracker, ObjectName};
use super::stored_job::StoredJob;

pub(crate) struct Jobs {
    metrics: Metrics,
    jobs: HashMap<ObjectName, Cached>,
    lists: ListTracker,
    /// Tombstones: names of jobs that were gone at this version according to a response, before the watch reports it.
    tombstones: BTreeMap<ObjectName, Version>,
}

/// A job as it is cached.
struct Cached {
    uid: String,
    version: Version,
    spec_fingerprint: u64,
    form: Form,
    /// Counts the job by its state while it is cached.
    _counted: CountedJob,
}

enum Form {
    /// A job as text. It is decoded on demand, and the decoded job is kept while it is in use.
    Text {
        kind: Arc<Kind>,
        text: Arc<str>,
        valid: Arc<OnceLock<()>>,
        decoded: Mutex<Weak<StoredJob>>,
    },
    /// An object that cannot be decoded.
    Unreadable(Arc<StoredJob>),
}

impl Cached {
    fn of(job: Arc<StoredJob>, metrics: &Metrics) -> Self {
        let namespace = job.meta().namespace.as_deref().unwrap_or_default();
        Self {
            _counted: metrics.count_job(job.kind().framework.name, namespace, job.status_ref()),
            uid: uid(job.meta()),
            version: Version::from_meta(job.meta()),
            spec_fingerprint: job.spec_fingerprint(),
            form: match &*job {
                StoredJob::Job {
                    kind, text, valid, ..
                } => Form::Text {
                    kind: kind.clone(),
                    text: text.clone(),
                    valid: valid.clone(),
                    decoded: Mutex::new(Arc::downgrade(&job)),
                },
                StoredJob::Unreadable { .. } => Form::Unreadable(job),
            },
        }
    }

    fn get(&self) -> Option<Arc<StoredJob>> {
        match &self.form {
            Form::Text {
                kind,
                text,
                valid,
                decoded,
            } => {
                let mut decoded = decoded.lock();
                if let Some(job) = decoded.upgrade() {
                    return Some(job);
                }
                let job = Arc::new(StoredJob::decode_again(kind, text, valid).ok()?);
                *decoded = Arc::downgrade(&job);
                Some(job)
            }
            Form::Unreadable(job) => Some(job.clone()),
        }
    }
}

/// The result of reading a job again.
pub(crate) enum Reread {
    /// The job that is cached now.
    Current(Arc<StoredJob>),
    /// The job is gone, or another has its name. Contains the UID of the cached job if its end has not been reported
    /// yet.
    Gone(Option<String>),
    /// A list has begun since the request, so the job must be read once more.
    Stale,
}

impl Default for Jobs {
    fn default() -> Self {
        Self::new(Metrics::default())
    }
}

impl Jobs {
    /// Creates an empty cache that counts its jobs in `metrics`.
    pub(crate) fn new(metrics: Metrics) -> Self {
        Self {
            metrics,
            jobs: HashMap::new(),
            lists: ListTracker::default(),
            tombstones: BTreeMap::new(),
        }
    }
}

impl Jobs {
    /// Returns the job of this name.
    pub(crate) fn get(&self, name: &ObjectName) -> Option<Arc<StoredJob>> {
        self.jobs.get(name)?.get()
    }

    #[cfg(any(test, feature = "__fuzzing"))]
    pub(crate) fn all(&self) -> impl Iterator<Item = (ObjectName, Arc<StoredJob>)> {
        self.jobs
            .iter()
            .filter_map(|(name, job)| Some((name.clone(), job.get()?)))
    }

    pub(crate) fn list_started(&mut self) {
        self.tombstones.clear();
        self.lists.list_started(self.jobs.keys().cloned());
    }

    /// Records the version of the next page of the list.
    pub(crate) fn list_page(&mut self, version: Version) {
        self.lists.list_page(version);
    }

    /// Caches a job of the list. Returns the UID of another job of the same name that it replaces.
    pub(crate) fn listed(&mut self, job: StoredJob) -> Option<String> {
        let name = name(job.meta());
        let known = self.known_version(&name);
        if self
            .lists
            .is_stale_in_list(&name, Version::from_meta(job.meta()), known)
        {
            return None;
        }
        self.put(job)
    }

    /// Ends a list. Returns the names and UIDs of the jobs that are gone.
    pub(crate) fn list_done(&mut self) -> Vec<(ObjectName, String)> {
        let mut lists = std::mem::take(&mut self.lists);
        let gone = lists.list_done(|name| self.known_version(name));
        self.lists = lists;
        gone.into_iter()
            .filter_map(|name| Some((name.clone(), self.jobs.remove(&name)?.uid)))
            .collect()
    }

    /// Records that the watch has sent everything up to this version.
    pub(crate) fn bookmark(&mut self, version: Version) {
        self.lists.bookmark(version);
        self.tombstones.retain(|_, at| *at > version);
    }

    /// Caches a new or changed job from the watch. Returns the UID of another job of the same name that it replaces.
    pub(crate) fn applied(&mut self, job: StoredJob) -> Option<String> {
        let name = name(job.meta());
        self.bookmark(Version::from_meta(job.meta()));
        if self.known_version(&name) > Some(Version::from_meta(job.meta())) {
            return None;
        }
        self.put_next(job)
    }

    /// Removes a job that was deleted according to the watch. Returns its UID.
    pub(crate) fn deleted(&mut self, meta: &ObjectMeta) -> String {
        let name = name(meta);
        self.bookmark(Version::from_meta(meta));
        let same = self.jobs.get(&name).is_some_and(|held| held.uid == uid(meta));
        // Otherwise a response has already delivered another job of that name.
        if same || self.known_version(&name) <= Some(Version::from_meta(meta)) {
            self.jobs.remove(&name);
        }
        uid(meta)
    }

    /// Returns the current list epoch, to be passed with the response to a request sent now.
    pub(crate) fn epoch(&self) -> ListEpoch {
        self.lists.epoch()
    }

    /// Caches a job from the response to our own write. Only cached jobs are written to, so a job that is no longer
    /// cached was deleted meanwhile. Returns true if it is certain which is newer, the response or the cached job.
    pub(crate) fn answered(&mut self, job: StoredJob, epoch: ListEpoch) -> bool {
        let (name, version) = (name(job.meta()), Version::from_meta(job.meta()));
        let held = self
            .jobs
            .get(&name)
            .is_some_and(|held| held.uid == uid(job.meta()));
        if held
            && self.known_version(&name) <= Some(version)
            && self.lists.accepts_answer(&name, version, epoch)
        {
            self.put_next(job);
        }
        !self.lists.has_new_list_since(epoch)
    }

    /// Records the result of reading the job that was cached as `was`: `job` at `version`, or none.
    pub(crate) fn reread(
        &mut self,
        was: &Arc<StoredJob>,
        epoch: ListEpoch,
        job: Option<StoredJob>,
        version: Version,
    ) -> Reread {
        if self.lists.has_new_list_since(epoch) {
            return Reread::Stale;
        }
        let name = name(was.meta());
        let at = job.as_ref().map_or(version, |job| Version::from_meta(job.meta()));
        let mut gone = None;
        // A newer state from the watch takes precedence.
        if self.holds(was) && self.known_version(&name) <= Some(at) {
            self.lists.accepts_answer(&name, at, epoch);
            gone = match job {
                Some(job) => self.put(job),
                None => {
                    // The watch may deliver older versions until it reports the deletion.
                    self.tombstones.insert(name.clone(), at);
                    self.jobs.remove(&name).map(|job| job.uid)
                }
            };
        }
        match self.get(&name) {
            Some(held) if uid(held.meta()) == uid(was.meta()) => Reread::Current(held),
            _ => Reread::Gone(gone),
        }
    }

    /// Returns true if exactly this object is cached.
    fn holds(&self, job: &Arc<StoredJob>) -> bool {
        self.get(&name(job.meta()))
            .is_some_and(|held| Arc::ptr_eq(&held, job))
    }

    /// Returns the latest version at which the job is known to exist, or to be gone.
    fn known_version(&self, name: &ObjectName) -> Option<Version> {
        let held = self.jobs.get(name).map(|held| held.version);
        held.or_else(|| self.tombstones.get(name).copied())
    }

    /// Caches the version that follows the cached one.
    fn put_next(&mut self, job: StoredJob) -> Option<String> {
        if let Some(held) = self.jobs.get(&name(job.meta()))
            && let Form::Text { valid, .. } = &held.form
        {
            job.inherit_validity(valid, held.spec_fingerprint);
        }
        self.put(job)
    }

    fn put(&mut self, job: StoredJob) -> Option<String> {
        let new = uid(job.meta());
        let old = self
            .jobs
            .insert(name(job.meta()), Cached::of(Arc::new(job), &self.metrics))?;
        Some(old.uid).filter(|old| *old != new)
    }
}

pub(crate) fn name(meta: &ObjectMeta) -> ObjectName {
    (
        meta.namespace.clone().unwrap_or_default(),
        meta.name.clone().unwrap_or_default(),
    )
}

pub(crate) fn uid(meta: &ObjectMeta) -> String {
    meta.uid.clone().unwrap_or_default()
}
