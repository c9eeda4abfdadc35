//! Objects, their versions and their history. Every write of any kind goes through this module.

pub(crate) mod labels;
pub(crate) mod object;
pub(crate) mod selector;
pub(crate) mod tables;
pub(crate) mod watch;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::Bound,
    sync::Arc,
    task::Waker,
};

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::{Registry, Target};
use crate::object::{document::Document, json};
use crate::store::{
    object::{Action, Applied, Change, Object},
    watch::Watch,
};

type Names = BTreeMap<String, Arc<Object>>;

/// The key of an object: the kind's number, the namespace (empty for kinds without namespaces) and the name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectKey {
    pub(crate) kind: usize,
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
}

/// All objects of one kind.
#[derive(Debug, Default)]
pub(crate) struct Table {
    objects: BTreeMap<String, Names>,
    history: VecDeque<Arc<Change>>,
    /// Changes up to and including this version are no longer stored.
    compacted: u64,
    pub(crate) watches: BTreeMap<u64, Watch>,
}

/// A change that is not stored yet, with its kind.
pub(crate) type Deferred = (Target, Arc<Change>);

/// A function that is called with every change when it is stored.
pub(crate) type Observer = Box<dyn FnMut(&Store, &Change) + Send>;

#[derive(Default)]
pub(crate) struct Store {
    /// Shared, so that the kinds before a request can be restored.
    pub(crate) registry: Arc<Registry>,
    tables: Vec<Table>,
    version: u64,
    /// The number of stored changes of each kind.
    history_limit: usize,
    uids: BTreeMap<String, ObjectKey>,
    /// The keys of dependents, by the UID of an owner.
    dependents: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// The queue of the garbage collector.
    pub(crate) garbage: VecDeque<ObjectKey>,
    observers: Vec<Observer>,
    /// The changes that watches and observers do not get before they are stored, if there is a storage.
    deferred: Option<Vec<Deferred>>,
    /// The tasks to wake when the store is no longer locked.
    pub(crate) wakers: Vec<Waker>,
    /// The time of the present request, for the ages in tables.
    pub(crate) now: Timestamp,
}

impl Store {
    pub(crate) fn new(first_version: u64, history_limit: usize) -> Self {
        Self {
            version: first_version,
            history_limit,
            ..Self::default()
        }
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn observe(&mut self, observer: Observer) {
        self.observers.push(observer);
    }

    pub(crate) fn table(&self, id: usize) -> Option<&Table> {
        self.tables.get(id)
    }

    pub(crate) fn table_mut(&mut self, id: usize) -> Option<&mut Table> {
        if self.tables.len() <= id {
            self.tables.resize_with(id + 1, Table::default);
        }
        self.tables.get_mut(id)
    }

    pub(crate) fn tables_mut(&mut self) -> impl Iterator<Item = (usize, &mut Table)> {
        self.tables.iter_mut().enumerate()
    }

    pub(crate) fn get(&self, id: usize, namespace: &str, name: &str) -> Option<&Arc<Object>> {
        self.tables.get(id)?.objects.get(namespace)?.get(name)
    }

    pub(crate) fn by_key(&self, key: &ObjectKey) -> Option<&Arc<Object>> {
        self.get(key.kind, &key.namespace, &key.name)
    }

    /// Returns the key of the object with this UID, if it exists.
    pub(crate) fn key_of_uid(&self, uid: &str) -> Option<&ObjectKey> {
        self.uids.get(uid)
    }

    /// Returns the keys of objects with this UID as an owner, in order.
    pub(crate) fn dependents(&self, uid: &str) -> impl Iterator<Item = &ObjectKey> {
        self.dependents.get(uid).into_iter().flatten()
    }

    /// Returns the objects of a kind in order of namespace and name, of one namespace or all, after a position.
    pub(crate) fn iter<'a>(
        &'a self,
        id: usize,
        namespace: Option<&str>,
        after: Option<&(String, String)>,
    ) -> Box<dyn Iterator<Item = &'a Arc<Object>> + 'a> {
        let Some(table) = self.tables.get(id) else {
            return Box::new(std::iter::empty());
        };
        let start = match (namespace, after) {
            (Some(namespace), _) => Bound::Included(namespace),
            (None, Some((namespace, _))) => Bound::Included(namespace.as_str()),
            (None, None) => Bound::Unbounded,
        };
        let end = namespace.map_or(Bound::Unbounded, Bound::Included);
        let after = after.cloned();
        let spaces = table.objects.range::<str, _>((start, end));
        Box::new(spaces.flat_map(move |(space, names)| {
            let from = match &after {
                Some((namespace, name)) if namespace == space => Bound::Excluded(name.as_str()),
                _ => Bound::Unbounded,
            };
            names
                .range::<str, _>((from, Bound::Unbounded))
                .map(|(_, object)| object)
        }))
    }

    /// Returns the objects of a kind at an older version, or `None` if the history does not reach back to it.
    pub(crate) fn at_version(
        &self,
        id: usize,
        version: u64,
    ) -> Option<BTreeMap<(String, String), Arc<Object>>> {
        let table = self.tables.get(id)?;
        if version < table.compacted {
            return None;
        }
        let mut objects: BTreeMap<(String, String), Arc<Object>> = self
            .iter(id, None, None)
            .map(|object| {
                (
                    (object.namespace().to_owned(), object.name().to_owned()),
                    object.clone(),
                )
            })
            .collect();
        for change in table
            .history
            .iter()
            .rev()
            .take_while(|change| change.resource_version() > version)
        {
            let key = (change.namespace().to_owned(), change.name().to_owned());
            match &change.previous {
                Some(previous) => objects.insert(key, previous.clone()),
                None => objects.remove(&key),
            };
        }
        Some(objects)
    }

    /// Removes all objects without recording changes, and ends all watches, as a crash does.
    pub(crate) fn clear(&mut self) {
        let mut wakers = std::mem::take(&mut self.wakers);
        for table in &mut self.tables {
            table.objects.clear();
            for watch in table.watches.values_mut() {
                watch.cut(&mut wakers);
            }
        }
        self.wakers = wakers;
        self.uids.clear();
        self.dependents.clear();
        self.garbage.clear();
    }

    /// Restores an object from a backup, with its UID and version, without recording a change.
    pub(crate) fn restore_object(&mut self, target: &Target, object: Arc<Object>) {
        let key = key(target, &object);
        self.uids.insert(object.uid().to_owned(), key.clone());
        self.index_owners(&object, &key);
        self.put(&object, &key);
        if object.is_deleting() {
            self.garbage.push_back(key);
        }
    }

    /// Continues from this version, with an empty history.
    pub(crate) fn restart_at(&mut self, version: u64) {
        self.version = version;
        self.compact();
    }

    pub(crate) fn add(
        &mut self,
        target: &Target,
        document: Document,
        applied: Option<Arc<Applied>>,
    ) -> Arc<Object> {
        self.version += 1;
        let object = Object::new(document, self.version, applied).made_by(Action::Added);
        let object = Arc::new(object);
        let key = key(target, &object);
        self.uids.insert(object.uid().to_owned(), key.clone());
        self.index_owners(&object, &key);
        self.put(&object, &key);
        self.record(target, object.clone(), None);
        object
    }

    /// Stores a new state of `old`. Does nothing if both are equal.
    pub(crate) fn replace(
        &mut self,
        target: &Target,
        old: &Arc<Object>,
        mut document: Document,
        applied: Option<Arc<Applied>>,
    ) -> Arc<Object> {
        if document.meta("resourceVersion") != old.meta("resourceVersion")
            && let (Some(meta), Some(known)) = (document.metadata_mut(), old.document().metadata())
        {
            meta.share_from("resourceVersion", known);
        }
        let key = key(target, old);
        // Applied configurations are part of the object, although responses do not contain them.
        if document == *old.document() && applied == old.applied {
            return old.clone();
        }
        self.version += 1;
        let object = Arc::new(Object::new(document, self.version, applied));
        if object.meta("ownerReferences") != old.meta("ownerReferences") {
            self.unindex_owners(old, &key);
            self.index_owners(&object, &key);
        }
        self.put(&object, &key);
        if object.is_deleting() {
            self.garbage.push_back(key);
        }
        self.record(target, object.clone(), Some(old.clone()));
        object
    }

    /// Removes an object. Returns its last state with the deletion's version.
    pub(crate) fn remove(&mut self, target: &Target, old: &Arc<Object>) -> Arc<Object> {
        self.version += 1;
        let object = Object::new(old.document().clone(), self.version, None).made_by(Action::Deleted);
        let object = Arc::new(object);
        let key = key(target, old);
        self.drop_object(old, &key);
        if let Some(keys) = self.dependents.get(old.uid()) {
            self.garbage.extend(keys.iter().cloned());
        }
        self.queue_terminating_parent(target, old);
        self.record(target, object.clone(), Some(old.clone()));
        object
    }

    /// Queues the namespace and the definition of a removed object if they are being deleted, because it may have
    /// been their last object.
    fn queue_terminating_parent(&mut self, target: &Target, gone: &Object) {
        let definition = format!("{}.{}", target.kind.plural, target.group());
        for (kind, name) in [
            ("namespaces", gone.namespace()),
            ("customresourcedefinitions", definition.as_str()),
        ] {
            let found = self
                .registry
                .by_plural(kind)
                .and_then(|container| Some((container.id, self.get(container.id, "", name)?)))
                .filter(|(_, container)| container.is_deleting());
            if let Some((id, _)) = found {
                self.garbage.push_back(ObjectKey {
                    kind: id,
                    namespace: "".into(),
                    name: name.into(),
                });
            }
        }
    }

    fn drop_object(&mut self, object: &Object, key: &ObjectKey) {
        if let Some(table) = self.table_mut(key.kind)
            && let Some(names) = table.objects.get_mut(object.namespace())
        {
            names.remove(object.name());
            if names.is_empty() {
                table.objects.remove(object.namespace());
            }
        }
        self.unindex_owners(object, key);
        self.uids.remove(object.uid());
    }

    fn put(&mut self, object: &Arc<Object>, key: &ObjectKey) {
        let Some(table) = self.table_mut(key.kind) else {
            return;
        };
        if let Some(slot) = table
            .objects
            .get_mut(&*key.namespace)
            .and_then(|names| names.get_mut(&*key.name))
        {
            *slot = object.clone();
            return;
        }
        let names = table.objects.entry(key.namespace.to_string()).or_default();
        names.insert(key.name.to_string(), object.clone());
    }

    fn index_owners(&mut self, object: &Object, key: &ObjectKey) {
        for uid in owner_uids(object) {
            self.dependents
                .entry(uid.to_owned())
                .or_default()
                .insert(key.clone());
        }
        if object.meta("ownerReferences").is_some() {
            self.garbage.push_back(key.clone());
        }
    }

    fn unindex_owners(&mut self, object: &Object, key: &ObjectKey) {
        for uid in owner_uids(object) {
            if let Some(keys) = self.dependents.get_mut(uid) {
                keys.remove(key);
                if keys.is_empty() {
                    self.dependents.remove(uid);
                }
            }
            // The owner may be waiting for this dependent.
            if let Some(owner) = self.uids.get(uid)
                && self.by_key(owner).is_some_and(|owner| owner.is_deleting())
            {
                let owner = owner.clone();
                self.garbage.push_back(owner);
            }
        }
    }

    fn record(&mut self, target: &Target, object: Arc<Object>, previous: Option<Arc<Object>>) {
        let change = Arc::new(Change::new(target.kind.clone(), object, previous));
        match &mut self.deferred {
            Some(deferred) => deferred.push((target.clone(), change)),
            None => self.publish(target, change),
        }
    }

    /// Adds a change to the history, and passes it to watches and observers.
    pub(crate) fn publish(&mut self, target: &Target, change: Arc<Change>) {
        let (limit, now) = (self.history_limit, self.now);
        let mut wakers = std::mem::take(&mut self.wakers);
        if let Some(table) = self.table_mut(target.id) {
            for watch in table.watches.values_mut() {
                watch.on_change(&change, now, &mut wakers);
            }
            table.history.push_back(change.clone());
            while table.history.len() > limit {
                if let Some(oldest) = table.history.pop_front() {
                    table.compacted = oldest.resource_version();
                }
            }
        }
        self.wakers = wakers;
        let mut observers = std::mem::take(&mut self.observers);
        for observer in &mut observers {
            observer(self, &change);
        }
        self.observers = observers;
    }

    /// Makes later changes wait for [`publish`](Self::publish).
    pub(crate) fn defer_changes(&mut self) {
        self.deferred.get_or_insert_default();
    }

    /// Removes and returns the changes that wait, oldest first.
    pub(crate) fn take_deferred(&mut self) -> Vec<Deferred> {
        self.deferred.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Reverts changes that were not published. They must be the newest.
    pub(crate) fn revert(&mut self, changes: Vec<Deferred>) {
        for (target, change) in changes.into_iter().rev() {
            self.version = change.resource_version().saturating_sub(1);
            let key = key(&target, &change.object);
            match change.action() {
                Action::Deleted => {}
                Action::Added => self.drop_object(&change.object, &key),
                Action::Modified => self.unindex_owners(&change.object, &key),
            }
            if let Some(previous) = &change.previous {
                self.uids.insert(previous.uid().to_owned(), key.clone());
                self.index_owners(previous, &key);
                self.put(previous, &key);
            }
        }
    }

    /// Returns the changes of a kind after a version, oldest first. The error is the oldest known version.
    pub(crate) fn changes_since(
        &self,
        id: usize,
        version: u64,
    ) -> Result<impl Iterator<Item = &Arc<Change>>, u64> {
        let table = self.tables.get(id).ok_or(self.version)?;
        if version < table.compacted {
            return Err(table.compacted);
        }
        let start = table
            .history
            .partition_point(|change| change.resource_version() <= version);
        Ok(table.history.iter().skip(start))
    }

    /// Returns all stored changes after a version, of all kinds, oldest first.
    pub(crate) fn log(&self, version: u64) -> Vec<Arc<Change>> {
        let mut changes: Vec<Arc<Change>> = self
            .tables
            .iter()
            .flat_map(|table| {
                table
                    .history
                    .iter()
                    .filter(|change| change.resource_version() > version)
            })
            .cloned()
            .collect();
        changes.sort_by_key(|change| change.resource_version());
        changes
    }

    /// Clears the history of all kinds.
    pub(crate) fn compact(&mut self) {
        let version = self.version;
        for table in &mut self.tables {
            table.history.clear();
            table.compacted = version;
        }
    }

    /// Removes a kind with its history, and ends its watches.
    pub(crate) fn remove_kind(&mut self, id: usize) {
        Arc::make_mut(&mut self.registry).remove(id);
        let mut wakers = std::mem::take(&mut self.wakers);
        if let Some(table) = self.table_mut(id) {
            for watch in table.watches.values_mut() {
                watch.end(&mut wakers);
            }
        }
        self.wakers = wakers;
    }
}

fn key(target: &Target, object: &Object) -> ObjectKey {
    ObjectKey {
        kind: target.id,
        namespace: object.namespace().into(),
        name: object.name().into(),
    }
}

fn owner_uids(object: &Object) -> impl Iterator<Item = &str> {
    json::array(object.meta("ownerReferences"))
        .filter_map(|reference| reference.get("uid").and_then(Value::as_str))
}
