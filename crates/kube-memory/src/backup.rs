//! Backups of a cluster's store, and what it is like to be set back to one.

use std::sync::Arc;

use super::{Cluster, kinds::Target, object::Object};

/// Versions left out when they go on after a restoration, so that none from before it is the newest.
const GAP: u64 = 1_000;

/// How versions are counted once a cluster was set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Versions {
    /// On from beyond the newest, and all before is forgotten: as Kubernetes asks of who restores an etcd.
    GoOn,
    /// From that of the backup, so that the same numbers mean other states.
    GoBack,
}

/// All that a cluster held at one moment, as a snapshot of its etcd has it.
#[derive(Debug, Clone)]
pub struct Backup {
    version: u64,
    objects: Vec<(Target, Vec<Arc<Object>>)>,
}

impl Cluster {
    /// Makes a backup of all objects.
    #[must_use]
    pub fn back_up(&self) -> Backup {
        self.shared.locked(|server| {
            let store = &server.store;
            let of_kind = |target: Target| {
                let objects = store.iter(target.id, None, None).cloned().collect();
                (target, objects)
            };
            Backup {
                version: store.version(),
                objects: store.registry.all().map(of_kind).collect(),
            }
        })
    }

    /// Sets all objects back to a backup: what was made since is gone, what was deleted since is there again, each
    /// with the UID and the version of then. The history is forgotten and all watches end, as when a server is started
    /// on a restored etcd; observers are not told. A kind that came since stays, without objects.
    pub fn restore(&self, backup: &Backup, versions: Versions) {
        self.shared.locked(|server| {
            let store = &mut server.store;
            store.clear();
            for (target, objects) in &backup.objects {
                for object in objects {
                    store.hold(target, object.clone());
                }
            }
            let version = match versions {
                Versions::GoOn => store.version() + GAP,
                Versions::GoBack => backup.version,
            };
            store.begin_at(version);
        });
    }
}
