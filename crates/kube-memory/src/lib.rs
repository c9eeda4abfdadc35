#![doc = include_str!("../README.md")]

mod backup;
mod controllers;
mod endpoint;
mod kinds;
mod object;
mod request;
mod server;
mod shared;
mod store;
mod verbs;

#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{Arc, Mutex},
    task::Waker,
    time::Duration,
};

use jiff::Timestamp;
use serde_json::Value;

pub use self::{
    backup::{Backup, Versions},
    endpoint::{Endpoint, Reply},
    kinds::Description,
    store::object::{Action, Change, Object},
};
use self::{
    server::{Server, Settings},
    shared::{Clock, Shared},
    store::{Store, watch::Watch},
};

/// Changes remembered for each kind, unless a [`Builder`] says otherwise.
const HISTORY: usize = 10_000;
/// Time between the bookmarks of an idle watch, unless a [`Builder`] says otherwise.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// How to make a [`Cluster`].
pub struct Builder {
    clock: Clock,
    history: usize,
    bookmark_interval: Option<Duration>,
    settings: Settings,
}

impl Builder {
    /// The clock of `creationTimestamp` and `deletionTimestamp`; the system's if none is given. Timeouts and bookmarks
    /// of watches follow Tokio's clock instead.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// The seed of UIDs and generated names; 0 if none is given.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// How many changes of each kind are remembered, 10,000 unless given. A watch from before them gets 410 Gone.
    #[must_use]
    pub fn history(mut self, changes: usize) -> Self {
        self.history = changes;
        self
    }

    /// Time between the bookmarks of an idle watch, one minute unless given; `None` leaves only the one at its end.
    #[must_use]
    pub fn bookmark_interval(mut self, interval: Option<Duration>) -> Self {
        self.bookmark_interval = interval.filter(|interval| !interval.is_zero());
        self
    }

    /// Creates the namespace of a new object if it does not exist, instead of refusing the object.
    #[must_use]
    pub fn auto_namespaces(mut self) -> Self {
        self.settings.auto_namespaces = true;
        self
    }

    /// Leaves dependents of deleted owners, and objects in deleted namespaces, to
    /// [`Cluster::collect_garbage_step`]. Otherwise they are deleted right after the request.
    #[must_use]
    pub fn manual_collection(mut self) -> Self {
        self.settings.manual_collection = true;
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

/// A cluster's API and all it stores. Clones are handles to the same cluster.
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
    /// A cluster with every setting at its default.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A cluster with another clock.
    #[must_use]
    pub fn with_clock(clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self::builder().clock(clock).build()
    }

    /// Settings for a cluster.
    #[must_use]
    pub fn builder() -> Builder {
        Builder {
            clock: Box::new(Timestamp::now),
            history: HISTORY,
            bookmark_interval: Some(BOOKMARK_INTERVAL),
            settings: Settings {
                seed: 0,
                auto_namespaces: false,
                manual_collection: false,
            },
        }
    }

    /// A client of this cluster. To be called within a Tokio runtime, since a client starts a task of its own.
    #[must_use]
    pub fn client(&self, default_namespace: &str) -> kube::Client {
        kube::Client::new(self.endpoint(), default_namespace)
    }

    /// The cluster as a service, to be wrapped before a client is made of it with [`kube::Client::new`].
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        Endpoint {
            shared: self.shared.clone(),
        }
    }

    /// Serves a kind without a CustomResourceDefinition. One with the same group and plural is replaced.
    pub fn install(&self, description: Description) {
        self.shared
            .locked(|server| server.install_description(description));
    }

    /// The same, unless a kind of that group, version and plural is served already: a built-in one, or one that has a
    /// CustomResourceDefinition.
    pub fn install_missing(&self, description: Description) {
        self.shared.locked(|server| {
            if !server.serves(&description) {
                server.install_description(description);
            }
        });
    }

    /// The version of the newest change.
    #[must_use]
    pub fn resource_version(&self) -> u64 {
        self.shared.locked(|server| server.store.version())
    }

    /// A stored object. `resource` is the plural, with the group after a dot where it alone is ambiguous; the
    /// namespace is empty for kinds outside namespaces.
    #[must_use]
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Arc<Object>> {
        self.shared
            .locked(|server| View { store: &server.store }.get(resource, namespace, name))
    }

    /// The stored objects of a kind in order of namespace and name, of one namespace or all. A kind that is not served
    /// has none.
    #[must_use]
    pub fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Arc<Object>> {
        self.shared
            .locked(|server| View { store: &server.store }.list(resource, namespace))
    }

    /// The remembered changes after a version, of all kinds, oldest first.
    #[must_use]
    pub fn changes(&self, after: u64) -> Vec<Arc<Change>> {
        self.shared.locked(|server| server.store.log(after))
    }

    /// Calls `observer` with every change from now on, at the moment it is stored and before the request that caused
    /// it is answered. The cluster is locked meanwhile: the observer reads it through its [`View`], and a call of a
    /// method of the cluster itself would never return.
    pub fn on_change(&self, mut observer: impl FnMut(&View<'_>, &Change) + Send + 'static) {
        self.shared.locked(|server| {
            server
                .store
                .observe(Box::new(move |store, change| observer(&View { store }, change)));
        });
    }

    /// Forgets the history: a watch from any version but the newest, and a page of a list that began earlier, gets 410
    /// Gone. Open watches go on.
    pub fn compact(&self) {
        self.shared.locked(|server| server.store.compact());
    }

    /// Lets the garbage collector process one object; false if there is none. For
    /// [`Builder::manual_collection`].
    pub fn collect_garbage_step(&self) -> bool {
        let now = (self.shared.clock)();
        self.shared.locked(|server| server.collect_step(now))
    }

    /// Ends the open watches of a kind, or of all kinds. Events not yet read are lost, as with a cut connection.
    /// Returns how many watches there were.
    pub fn cut_watches(&self, resource: Option<&str>) -> usize {
        self.each_watch(resource, Watch::cut)
    }

    /// Stops the events of the open watches of a kind, or of all kinds, as a dead connection does: nothing comes, not
    /// even the end. Later watches are not affected. Returns how many watches there were.
    pub fn freeze_watches(&self, resource: Option<&str>) -> usize {
        self.each_watch(resource, |watch, wakers| watch.freeze(true, wakers))
    }

    /// Lets frozen watches go on with what they have missed. Returns how many watches there were, frozen or not.
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

/// What is stored at the moment of a change.
pub struct View<'a> {
    store: &'a Store,
}

impl View<'_> {
    /// As [`Cluster::get`].
    #[must_use]
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Arc<Object>> {
        let target = self.store.registry.by_plural(resource)?;
        self.store.get(target.id, namespace, name).cloned()
    }

    /// As [`Cluster::list`].
    #[must_use]
    pub fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Arc<Object>> {
        let Some(target) = self.store.registry.by_plural(resource) else {
            return Vec::new();
        };
        self.store.iter(target.id, namespace, None).cloned().collect()
    }

    /// The object with a UID, of any kind.
    #[must_use]
    pub fn by_uid(&self, uid: &str) -> Option<Arc<Object>> {
        self.store.by_key(self.store.key_of_uid(uid)?).cloned()
    }

    /// The version of the newest change.
    #[must_use]
    pub fn resource_version(&self) -> u64 {
        self.store.version()
    }
}

/// The JSON of an object, for comparison with a literal.
impl PartialEq<Value> for Object {
    fn eq(&self, other: &Value) -> bool {
        self.value() == other
    }
}
