#![doc = include_str!("../README.md")]

mod backup;
mod controllers;
mod endpoint;
mod kinds;
mod object;
mod request;
mod server;
mod shared;
mod storage;
mod store;
mod subresource;
mod table;
mod verbs;

#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc, task::Waker, time::Duration};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;

#[cfg(feature = "rules")]
pub use self::kinds::rules::{RuleViolation, Rules, rule_environment};
pub use self::{
    backup::{Backup, Versions},
    endpoint::{Endpoint, Reply},
    kinds::Description,
    storage::Storage,
    store::object::{Action, Change, Object},
    subresource::{Subresource, SubresourceRequest, SubresourceResponse, failure_response},
};
use self::{
    server::{Server, Settings},
    shared::{Clock, Shared},
    store::{Store, watch::Watch},
};

/// The default of [`Builder::history`].
const DEFAULT_HISTORY_CHANGES: usize = 10_000;
/// The default of [`Builder::bookmark_interval`].
const DEFAULT_BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// The settings of a [`Cluster`]. From [`Cluster::builder`].
pub struct Builder {
    clock: Clock,
    history: usize,
    bookmark_interval: Option<Duration>,
    settings: Settings,
}

impl Builder {
    /// Sets the clock of `creationTimestamp` and `deletionTimestamp`. Default: the system's clock. Timeouts and
    /// bookmarks of watches follow Tokio's clock instead.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// Sets the seed of UIDs and generated names. Default: 0.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Sets the number of changes that are stored for each kind. Default: 10,000. A watch from an older version gets
    /// 410 Gone.
    #[must_use]
    pub fn history(mut self, changes: usize) -> Self {
        self.history = changes;
        self
    }

    /// Sets the time between the bookmarks of an idle watch. Default: one minute. With `None` or zero, a watch gets
    /// only the bookmark at its end.
    #[must_use]
    pub fn bookmark_interval(mut self, interval: Option<Duration>) -> Self {
        self.bookmark_interval = interval.filter(|interval| !interval.is_zero());
        self
    }

    /// Creates the namespace of a new object if it does not exist. Default: the object is rejected.
    #[must_use]
    pub fn auto_namespaces(mut self) -> Self {
        self.settings.auto_namespaces = true;
        self
    }

    /// Deletes dependents of deleted owners, and objects in deleted namespaces, only by
    /// [`Cluster::collect_garbage_step`]. Default: they are deleted right after the request.
    #[must_use]
    pub fn manual_collection(mut self) -> Self {
        self.settings.manual_collection = true;
        self
    }

    /// Evaluates the rules of definitions (`x-kubernetes-validations`) on writes of their objects. Default: they are not
    /// evaluated, because that takes more time than all else. Rules that call functions which the interpreter `cel` lacks
    /// are not evaluated: those of quantities, URLs, addresses, semantic versions, times, and of the search in texts by
    /// index or regular expression.
    #[cfg(feature = "rules")]
    #[must_use]
    pub fn rules(mut self) -> Self {
        self.settings.rules = true;
        self
    }

    /// Serves more of the built-in kinds of a real API server, such as Deployments and Roles. Their objects are stored as
    /// they are sent, without defaults or validation, and no controller acts on them. Default: such a kind is served only
    /// after [`Cluster::install`].
    #[must_use]
    pub fn stored_kinds(mut self) -> Self {
        self.settings.stored_kinds = true;
        self
    }

    /// Makes the cluster, with the namespaces `default` and `kube-system`.
    #[must_use]
    pub fn build(self) -> Cluster {
        let server = Server::new(self.settings, self.history, (self.clock)());
        let shared = Shared {
            server: Mutex::new(server),
            clock: self.clock,
            bookmark_interval: self.bookmark_interval,
        };
        Cluster {
            shared: Arc::new(shared),
        }
    }
}

/// An API server with its store. Clones are handles to the same cluster.
#[derive(Clone)]
pub struct Cluster {
    shared: Arc<Shared>,
}

impl Default for Cluster {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("resource_version", &self.resource_version())
            .finish()
    }
}

impl Cluster {
    /// Makes a cluster with default settings.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Makes a cluster with this clock and otherwise default settings.
    #[must_use]
    pub fn with_clock(clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self::builder().clock(clock).build()
    }

    /// Returns the default settings, to change and [`build`](Builder::build).
    #[must_use]
    pub fn builder() -> Builder {
        Builder {
            clock: Box::new(Timestamp::now),
            history: DEFAULT_HISTORY_CHANGES,
            bookmark_interval: Some(DEFAULT_BOOKMARK_INTERVAL),
            settings: Settings {
                seed: 0,
                auto_namespaces: false,
                manual_collection: false,
                stored_kinds: false,
                #[cfg(feature = "rules")]
                rules: false,
            },
        }
    }

    /// Takes the objects of a storage in the place of the cluster's own, with their UIDs and versions, and keeps the
    /// storage up to date. An empty storage gets the cluster's objects. Install kinds without definitions before.
    ///
    /// The changes of a request, and those of the cluster's own controllers that follow from it, are stored together
    /// before the response is sent and before a watch or an observer gets them. If they cannot be stored, the request
    /// fails with code 500 and changes nothing. A watch from a version before the last stored one gets 410 Gone.
    /// [`restore`](Self::restore) must not be used afterwards, because it does not change the storage.
    ///
    /// Returns the number of stored objects whose kind is not served. They stay in the storage, and return in a cluster
    /// that serves it.
    ///
    /// # Errors
    /// The storage cannot be read or written, or contains something else. Use the cluster no further then.
    pub fn persist(&self, storage: impl Storage + 'static) -> std::io::Result<usize> {
        self.shared.locked(|server| server.attach(Box::new(storage)))
    }

    /// Makes a client of this cluster. Must be called within a Tokio runtime, because a client starts a task.
    #[must_use]
    pub fn client(&self, default_namespace: &str) -> kube::Client {
        kube::Client::new(self.endpoint(), default_namespace)
    }

    /// Returns the cluster as a service, to wrap it in layers before [`kube::Client::new`].
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        Endpoint {
            shared: self.shared.clone(),
        }
    }

    /// Serves a kind without a CustomResourceDefinition. A kind with the same group and plural is replaced.
    pub fn install(&self, description: Description) {
        self.shared
            .locked(|server| server.install_description(description));
    }

    /// Serves a kind like [`install`](Self::install), unless a kind of the same group, version and plural is already
    /// served, built-in or by a CustomResourceDefinition.
    pub fn install_missing(&self, description: Description) {
        self.shared.locked(|server| {
            if !server.serves(&description) {
                server.install_description(description);
            }
        });
    }

    /// Serves a sub-resource that needs more than stored objects, such as `pods/log`. A sub-resource of the same name is
    /// replaced.
    pub fn serve_subresource(&self, subresource: Subresource) {
        let key = (subresource.resource.clone(), subresource.name.clone());
        self.shared
            .locked(|server| server.subresources.insert(key, subresource));
    }

    /// Returns the version of the newest change.
    #[must_use]
    pub fn resource_version(&self) -> u64 {
        self.shared.locked(|server| server.store.version())
    }

    /// Returns a stored object. `resource` is the plural, followed by a dot and the group if the plural is ambiguous.
    /// `namespace` is empty for cluster-scoped kinds.
    #[must_use]
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Arc<Object>> {
        self.shared
            .locked(|server| View { store: &server.store }.get(resource, namespace, name))
    }

    /// Returns the stored objects of a kind, of one namespace or all, ordered by namespace and name. The list is empty
    /// for a kind that is not served.
    #[must_use]
    pub fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Arc<Object>> {
        self.shared
            .locked(|server| View { store: &server.store }.list(resource, namespace))
    }

    /// Returns the stored changes of all kinds after a version. The oldest comes first.
    #[must_use]
    pub fn changes(&self, after: u64) -> Vec<Arc<Change>> {
        self.shared.locked(|server| server.store.log(after))
    }

    /// Calls `observer` with every later change, when the change is stored and before the response to the request that
    /// caused it. The cluster is locked during the call. The observer must read it through the [`View`], because a call
    /// of the cluster's own methods would block forever.
    pub fn on_change(&self, mut observer: impl FnMut(&View<'_>, &Change) + Send + 'static) {
        self.shared.locked(|server| {
            server
                .store
                .observe(Box::new(move |store, change| observer(&View { store }, change)));
        });
    }

    /// Clears the history. A watch from any version except the newest, and the next page of a list that began earlier,
    /// get 410 Gone. Open watches continue.
    pub fn compact(&self) {
        self.shared.locked(|server| server.store.compact());
    }

    /// Makes the garbage collector process one object. Returns false if there is none. For
    /// [`Builder::manual_collection`].
    pub fn collect_garbage_step(&self) -> bool {
        let now = (self.shared.clock)();
        self.shared.locked(|server| {
            let kinds = server.kinds_to_restore();
            let found = server.collect_step(now);
            server.commit(kinds).is_ok() && found
        })
    }

    /// Ends the open watches of a kind, or of all kinds. Unread events are lost, as with a broken connection. Returns
    /// the number of watches.
    pub fn cut_watches(&self, resource: Option<&str>) -> usize {
        self.each_watch(resource, Watch::cut)
    }

    /// Freezes the open watches of a kind, or of all kinds, like a dead connection: they deliver nothing, not even
    /// their end. Later watches are not affected. Returns the number of watches.
    pub fn freeze_watches(&self, resource: Option<&str>) -> usize {
        self.each_watch(resource, |watch, wakers| watch.freeze(true, wakers))
    }

    /// Resumes frozen watches, which then deliver the events that they have missed. Returns the number of watches,
    /// frozen or not.
    pub fn thaw_watches(&self, resource: Option<&str>) -> usize {
        self.each_watch(resource, |watch, wakers| watch.freeze(false, wakers))
    }

    fn each_watch(&self, resource: Option<&str>, act: impl Fn(&mut Watch, &mut Vec<Waker>)) -> usize {
        self.shared.locked(|server| {
            let store = &mut server.store;
            let only = resource.map(|resource| store.registry.by_plural(resource).map(|target| target.id));
            let mut wakers = Vec::new();
            let mut count = 0;
            for (_, table) in store
                .tables_mut()
                .filter(|(id, _)| only.is_none_or(|only| only == Some(*id)))
            {
                for watch in table.watches.values_mut() {
                    act(watch, &mut wakers);
                    count += 1;
                }
            }
            store.wakers.append(&mut wakers);
            count
        })
    }
}

/// The store at the time of a change.
pub struct View<'a> {
    store: &'a Store,
}

impl View<'_> {
    /// Returns a stored object, like [`Cluster::get`].
    #[must_use]
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Arc<Object>> {
        let target = self.store.registry.by_plural(resource)?;
        self.store.get(target.id, namespace, name).cloned()
    }

    /// Returns the stored objects of a kind, like [`Cluster::list`].
    #[must_use]
    pub fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Arc<Object>> {
        let Some(target) = self.store.registry.by_plural(resource) else {
            return Vec::new();
        };
        self.store.iter(target.id, namespace, None).cloned().collect()
    }

    /// Returns the object with this UID, of any kind.
    #[must_use]
    pub fn by_uid(&self, uid: &str) -> Option<Arc<Object>> {
        self.store.by_key(self.store.key_of_uid(uid)?).cloned()
    }

    /// Returns the version of the newest change.
    #[must_use]
    pub fn resource_version(&self) -> u64 {
        self.store.version()
    }
}

/// Compares the JSON of an object with a literal.
impl PartialEq<Value> for Object {
    fn eq(&self, other: &Value) -> bool {
        self.value() == other
    }
}
