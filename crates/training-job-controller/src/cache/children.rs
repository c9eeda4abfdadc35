//! The cache of pods, services and other objects, indexed by the job that controls them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use kube_follow::Version;
use training_job::plan::ChildKind;
use training_job::plan::observed::{Observed, PodRecord};

use super::super::clock::Clock;
use super::list_epoch::{ListEpoch, ListTracker, ObjectName};
use super::partial_child::Child;
use super::partial_child::PartialChild;

/// The job that controls a child.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OwnerRef {
    pub(crate) namespace: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// A job's namespace and UID.
type JobKey = (String, String);

impl OwnerRef {
    fn key(&self) -> JobKey {
        (self.namespace.clone(), self.uid.clone())
    }
}

/// The cached children of all jobs.
pub(crate) struct Children {
    clock: Arc<dyn Clock>,
    /// The children by namespace and UID of the job, because an owner in another namespace is invalid. Like all maps with
    /// an entry per object of the cluster, it is hashed: the comparisons in a tree read many texts that are not in the
    /// processor's caches.
    observed: HashMap<JobKey, OfJob>,
    /// Jobs that are gone but still have children. The results of these children are not recorded.
    forgotten: BTreeSet<JobKey>,
    trackers: BTreeMap<ChildKind, Tracker>,
}

/// The state of the children of one kind.
#[derive(Default)]
struct Tracker {
    entries: HashMap<ObjectName, Entry>,
    lists: ListTracker,
    /// UIDs of the objects that this controller has deleted and that are not gone yet.
    deleted_here: BTreeSet<String>,
    /// Objects that no watch shows, because they lack the label. A read found them.
    hidden: BTreeSet<ObjectName>,
}

struct Entry {
    owner: Arc<OwnerRef>,
    version: Version,
}

struct OfJob {
    /// The job; the entries of its children share the allocation.
    owner: Arc<OwnerRef>,
    observed: Arc<Observed>,
}

impl Children {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            observed: HashMap::new(),
            forgotten: BTreeSet::new(),
            trackers: BTreeMap::new(),
        }
    }

    fn tracker(&mut self, kind: ChildKind) -> &mut Tracker {
        self.trackers.entry(kind).or_default()
    }

    /// Returns the children of a job.
    pub(crate) fn observe(&self, namespace: &str, uid: &str) -> Arc<Observed> {
        let job = (namespace.to_owned(), uid.to_owned());
        self.observed
            .get(&job)
            .map(|of_job| of_job.observed.clone())
            .unwrap_or_default()
    }

    /// Returns the children of each job.
    #[cfg(feature = "__fuzzing")]
    pub(crate) fn all(&self) -> BTreeMap<JobKey, Arc<Observed>> {
        let all = self.observed.iter();
        all.map(|(job, of_job)| (job.clone(), of_job.observed.clone()))
            .collect()
    }

    /// Removes the results of a job that is gone. Its children leave the cache with their own watch events, except for pods that
    /// no watch shows, which leave it now.
    pub(crate) fn forget(&mut self, namespace: &str, uid: &str) {
        let job = (namespace.to_owned(), uid.to_owned());
        if let Some(of_job) = self.observed.get_mut(&job) {
            Arc::make_mut(&mut of_job.observed).removed.clear();
            self.forgotten.insert(job.clone());
            self.drop_if_empty(&job);
        }
        // No watch reports the end of these pods.
        let Tracker { entries, hidden, .. } = self.tracker(ChildKind::Pod);
        let is_of_job = |key: &&ObjectName| entries.get(*key).is_some_and(|entry| entry.owner.key() == job);
        let hidden: Vec<_> = hidden.iter().filter(is_of_job).cloned().collect();
        for key in hidden {
            self.remove::<PodRecord>(ChildKind::Pod, &key, None);
        }
    }

    /// Returns the owner of the object of this name, if the object is cached.
    pub(crate) fn owner(&mut self, kind: ChildKind, namespace: &str, name: &str) -> Option<OwnerRef> {
        let key = (namespace.to_owned(), name.to_owned());
        self.tracker(kind).entries.get(&key).map(|e| (*e.owner).clone())
    }

    pub(crate) fn list_started(&mut self, kind: ChildKind) {
        let tracker = self.tracker(kind);
        tracker.lists.list_started(tracker.entries.keys().cloned());
    }

    /// Records the version of the next page of the list.
    pub(crate) fn list_page(&mut self, kind: ChildKind, version: Version) {
        self.tracker(kind).lists.list_page(version);
    }

    /// Caches an object of the list. Returns the affected jobs.
    pub(crate) fn listed<C: Child>(&mut self, kind: ChildKind, object: &PartialChild<C>) -> Vec<OwnerRef> {
        let meta = object.meta();
        let key = key(meta);
        let tracker = self.tracker(kind);
        let held = tracker.entries.get(&key).map(|entry| entry.version);
        let known_better = tracker
            .lists
            .is_stale_in_list(&key, Version::from_meta(meta), held);
        if meta.deletion_timestamp.is_none()
            && let Some(uid) = &meta.uid
        {
            // A server that was restored from a backup has lost the deletion, so the object must be deleted again.
            tracker.deleted_here.remove(uid);
        }
        if known_better {
            return Vec::new();
        }
        self.insert::<C>(kind, object, true)
    }

    /// Ends a list. Returns the owners of the objects that are gone.
    pub(crate) fn list_done<C: Child>(&mut self, kind: ChildKind) -> Vec<OwnerRef> {
        let tracker = self.tracker(kind);
        let held = |key: &ObjectName| tracker.entries.get(key).map(|entry| entry.version);
        let gone = tracker.lists.list_done(held);
        gone.into_iter()
            .filter_map(|key| self.remove::<C>(kind, &key, None))
            .collect()
    }

    /// Records that the watch has sent everything up to this version.
    pub(crate) fn bookmark(&mut self, kind: ChildKind, version: Version) {
        self.tracker(kind).lists.bookmark(version);
    }

    /// Caches a new or changed object from the watch. Returns the affected jobs.
    pub(crate) fn applied<C: Child>(&mut self, kind: ChildKind, object: &PartialChild<C>) -> Vec<OwnerRef> {
        self.bookmark(kind, Version::from_meta(object.meta()));
        self.insert::<C>(kind, object, false)
    }

    /// Removes an object that was deleted according to the watch. Returns the affected job.
    pub(crate) fn deleted<C: Child>(
        &mut self,
        kind: ChildKind,
        object: &PartialChild<C>,
    ) -> Option<OwnerRef> {
        let meta = object.meta();
        let (key, version) = (key(meta), Version::from_meta(meta));
        self.bookmark(kind, version);
        let mut last = object.record(kind);
        let held = self.held::<C>(kind, &key);
        last.inherit_from(
            held.as_deref().filter(|held| held.uid() == last.uid()),
            &*self.clock,
        );
        if held.is_some_and(|held| held.uid() != last.uid()) {
            let tracker = self.tracker(kind);
            if tracker.entries.get(&key).is_some_and(|e| e.version > version) {
                // A response has already delivered its successor, which may belong to another job.
                tracker.deleted_here.remove(last.uid());
                return controller(meta);
            }
        }
        self.remove::<C>(kind, &key, Some(&last))
    }

    /// Returns the current list epoch, to be passed with the response to a request sent now.
    pub(crate) fn epoch(&mut self, kind: ChildKind) -> ListEpoch {
        self.tracker(kind).lists.epoch()
    }

    /// Caches an object from the response to our own write or read, unless the cache has a newer state.
    pub(crate) fn answered<C: Child>(&mut self, kind: ChildKind, object: &PartialChild<C>, epoch: ListEpoch) {
        let meta = object.meta();
        let key = key(meta);
        if self
            .tracker(kind)
            .lists
            .accepts_answer(&key, Version::from_meta(meta), epoch)
        {
            self.insert::<C>(kind, object, false);
        }
    }

    /// Caches an object that no watch shows, because it lacks the label, from the response to a read. The watch may have
    /// sent later changes of other objects.
    pub(crate) fn found<C: Child>(&mut self, kind: ChildKind, object: &PartialChild<C>, epoch: ListEpoch) {
        let meta = object.meta();
        let (key, version) = (key(meta), Version::from_meta(meta));
        let tracker = self.tracker(kind);
        let is_older = tracker
            .entries
            .get(&key)
            .is_some_and(|held| held.version > version);
        if !is_older && !tracker.lists.has_new_list_since(epoch) {
            self.insert::<C>(kind, object, false);
            self.tracker(kind).hidden.insert(key);
        }
    }

    /// Marks an object that this controller is deleting. It may remain for its grace period.
    pub(crate) fn mark_deleting<C: Child>(
        &mut self,
        kind: ChildKind,
        namespace: &str,
        owner: &str,
        name: &str,
        uid: &str,
    ) {
        if self.mark::<C>(kind, namespace, owner, name, uid, true) {
            self.tracker(kind).deleted_here.insert(uid.to_owned());
        }
    }

    /// Reverts [`mark_deleting`](Self::mark_deleting) after the delete call failed.
    pub(crate) fn unmark_deleting<C: Child>(
        &mut self,
        kind: ChildKind,
        namespace: &str,
        owner: &str,
        name: &str,
        uid: &str,
    ) {
        if self.tracker(kind).deleted_here.remove(uid) {
            self.mark::<C>(kind, namespace, owner, name, uid, false);
        }
    }

    fn mark<C: Child>(
        &mut self,
        kind: ChildKind,
        namespace: &str,
        owner: &str,
        name: &str,
        uid: &str,
        deleting: bool,
    ) -> bool {
        let job = (namespace.to_owned(), owner.to_owned());
        let Some(of_job) = self.observed.get_mut(&job) else {
            return false;
        };
        let held = C::map(Arc::make_mut(&mut of_job.observed), kind)
            .get_mut(name)
            .filter(|r| r.uid() == uid);
        held.map(|record| *Arc::make_mut(record).deleting() = deleting)
            .is_some()
    }

    /// Removes an object that is gone according to a response, unless a list has begun since the request.
    pub(crate) fn confirm_gone<C: Child>(
        &mut self,
        kind: ChildKind,
        namespace: &str,
        name: &str,
        uid: &str,
        epoch: ListEpoch,
    ) {
        let key = (namespace.to_owned(), name.to_owned());
        let overtaken = self.tracker(kind).lists.has_new_list_since(epoch);
        if !overtaken
            && self
                .held::<C>(kind, &key)
                .is_some_and(|record| record.uid() == uid)
        {
            self.remove::<C>(kind, &key, None);
        }
    }

    /// Returns true if the child is cached in a state in which it occupies capacity.
    pub(crate) fn is_active<C: Child>(&mut self, kind: ChildKind, object: &PartialChild<C>) -> bool {
        let held = self.held::<C>(kind, &key(object.meta()));
        held.is_some_and(|held| !held.has_ended())
    }

    fn held<C: Child>(&mut self, kind: ChildKind, key: &ObjectName) -> Option<Arc<C>> {
        let owner = self.tracker(kind).entries.get(key)?.owner.key();
        let of_job = self.observed.get_mut(&owner)?;
        C::map(Arc::make_mut(&mut of_job.observed), kind)
            .get(&key.1)
            .cloned()
    }

    fn insert<C: Child>(
        &mut self,
        kind: ChildKind,
        object: &PartialChild<C>,
        from_list: bool,
    ) -> Vec<OwnerRef> {
        let meta = object.meta();
        let (key, version) = (key(meta), Version::from_meta(meta));
        let Some(owner) = controller(meta) else {
            // A client removed the owner reference, so no job controls the object now.
            return self.remove::<C>(kind, &key, None).into_iter().collect();
        };
        let mut concerned = vec![owner.clone()];
        let mut record = object.record(kind);
        let tracker = self.tracker(kind);
        if tracker.deleted_here.contains(record.uid()) {
            *record.deleting() = true;
        }
        if let Some(old) = tracker.entries.get(&key) {
            if !from_list && old.version > version {
                return Vec::new();
            }
            if old.owner.uid != owner.uid {
                concerned.extend(self.remove::<C>(kind, &key, None));
            }
        }
        let mut held = self.held::<C>(kind, &key);
        if held.as_ref().is_some_and(|held| held.uid() != record.uid()) {
            // The watch has not reported the deletion of the predecessor.
            self.remove::<C>(kind, &key, None);
            held = None;
        }
        record.inherit_from(held.as_deref(), &*self.clock);
        let of_job = self.observed.entry(owner.key()).or_insert_with(|| OfJob {
            owner: Arc::new(owner.clone()),
            observed: Arc::default(),
        });
        let owner = if *of_job.owner == owner {
            of_job.owner.clone()
        } else {
            // A client changed the name in the owner reference.
            Arc::new(owner)
        };
        let map = C::map(Arc::make_mut(&mut of_job.observed), kind);
        map.insert(record.name().to_owned(), Arc::new(record));
        let tracker = self.tracker(kind);
        tracker.hidden.remove(&key);
        tracker.entries.insert(key, Entry { owner, version });
        concerned
    }

    fn remove<C: Child>(&mut self, kind: ChildKind, key: &ObjectName, last: Option<&C>) -> Option<OwnerRef> {
        let tracker = self.tracker(kind);
        tracker.hidden.remove(key);
        let owner = tracker.entries.remove(key)?.owner;
        let job = owner.key();
        let observed = Arc::make_mut(&mut self.observed.get_mut(&job)?.observed);
        if let Some(record) = C::map(observed, kind).remove(&key.1) {
            let last = last.filter(|l| l.uid() == record.uid()).unwrap_or(&record);
            let ours = self.tracker(kind).deleted_here.remove(last.uid());
            if !self.forgotten.contains(&job)
                && let Some(of_job) = self.observed.get_mut(&job)
            {
                last.on_removed(Arc::make_mut(&mut of_job.observed), ours);
            }
        }
        self.drop_if_empty(&job);
        Some(Arc::unwrap_or_clone(owner))
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.observed.is_empty()
            && self.forgotten.is_empty()
            && self
                .trackers
                .values()
                .all(|t| t.entries.is_empty() && t.deleted_here.is_empty() && t.hidden.is_empty())
    }

    fn drop_if_empty(&mut self, job: &JobKey) {
        let empty = |of_job: &OfJob| {
            let o = &of_job.observed;
            let no_objects = o.objects.values().all(BTreeMap::is_empty);
            no_objects && o.pods.is_empty() && o.services.is_empty() && o.removed.is_empty()
        };
        if self.observed.get(job).is_some_and(empty) {
            self.observed.remove(job);
            self.forgotten.remove(job);
        }
    }
}

fn key(meta: &ObjectMeta) -> ObjectName {
    (
        meta.namespace.clone().unwrap_or_default(),
        meta.name.clone().unwrap_or_default(),
    )
}

/// Returns the controlling owner. It is in the object's own namespace, as for the garbage collector.
pub(crate) fn controller(meta: &ObjectMeta) -> Option<OwnerRef> {
    let owner = meta
        .owner_references
        .iter()
        .flatten()
        .find(|o| o.controller == Some(true))?;
    Some(OwnerRef {
        namespace: meta.namespace.clone()?,
        kind: owner.kind.clone(),
        name: owner.name.clone(),
        uid: owner.uid.clone(),
    })
}
