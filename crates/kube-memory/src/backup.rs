//! Backups of a cluster's store, and their restoration.

use std::sync::Arc;

use crate::Cluster;
use crate::kinds::Target;
use crate::store::object::Object;

/// The number of versions skipped by [`Versions::GoOn`]. It keeps a client's version from before the restore from
/// being the newest.
const SKIPPED_VERSIONS: u64 = 1_000;

/// The choice of resource versions after [`Cluster::restore`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Versions {
    /// Versions continue beyond the newest, and all versions before are compacted. Kubernetes recommends this for
    /// restoring an etcd (`etcdutl snapshot restore --bump-revision --mark-compacted`).
    GoOn,
    /// Versions continue from the backup's, so that the same versions are used again for other states.
    GoBack,
}

/// All objects of a cluster at one moment, as in a snapshot of etcd.
#[derive(Debug, Clone)]
pub struct Backup {
    version: u64,
    objects: Vec<(Target, Vec<Arc<Object>>)>,
}

impl Cluster {
    /// Backs up all objects.
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

    /// Restores a backup. Objects created since are removed, and objects deleted since are back, with the UIDs and
    /// versions of the backup. The history is cleared and all watches end, as when a server starts on a restored
    /// etcd. Observers are not called. A kind that was added since stays, without objects.
    pub fn restore(&self, backup: &Backup, versions: Versions) {
        self.shared.locked(|server| {
            let store = &mut server.store;
            store.clear();
            for (target, objects) in &backup.objects {
                for object in objects {
                    store.restore_object(target, object.clone());
                }
            }
            let version = match versions {
                Versions::GoOn => store.version() + SKIPPED_VERSIONS,
                Versions::GoBack => backup.version,
            };
            store.restart_at(version);
        });
    }
}
