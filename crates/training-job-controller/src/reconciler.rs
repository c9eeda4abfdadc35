//! The reconciler of one kind: the cached jobs, and a record for each job.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use training_job::job::Kind;

use super::cache::jobs::Jobs;
use super::context::Context;
use super::job_state::JobState;
use super::metrics::Metrics;

/// The first list of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FirstList {
    Pending,
    /// The operator may not list the resource.
    Denied,
    Complete,
}

impl FirstList {
    pub(super) fn sender() -> watch::Sender<Self> {
        watch::Sender::new(Self::Pending)
    }

    /// Records that the list is complete.
    pub(super) fn complete(list: &watch::Sender<Self>) {
        list.send_replace(Self::Complete);
    }

    /// Records that the server denied the list. A resource that was listed before is known.
    pub(super) fn deny(list: &watch::Sender<Self>) {
        list.send_if_modified(|list| {
            let is_first = *list == Self::Pending;
            if is_first {
                *list = Self::Denied;
            }
            is_first
        });
    }
}

/// Reconciles the jobs of type `J`.
pub(super) struct JobReconciler {
    pub(super) kind: Arc<Kind>,
    /// The index of the kind in the operator's list.
    pub(super) number: usize,
    jobs: Mutex<Jobs>,
    /// Job states by UID.
    states: Mutex<HashMap<String, JobState>>,
}

impl JobReconciler {
    /// Creates the reconciler of a kind with this number, and its metrics.
    pub(super) fn new(kind: Arc<Kind>, number: usize, metrics: &Metrics) -> Self {
        Self {
            kind,
            number,
            jobs: Mutex::new(Jobs::new(metrics.clone())),
            states: Mutex::default(),
        }
    }

    pub(super) fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock()
    }

    pub(super) fn states(&self) -> MutexGuard<'_, HashMap<String, JobState>> {
        self.states.lock()
    }

    /// Removes the state and children of a deleted job.
    pub(super) fn forget(&self, context: &Context, namespace: &str, uid: &str) {
        if self.states().remove(uid).is_some() {
            context.metrics.deleted(self.kind.framework.name, namespace);
        }
        context.children().forget(namespace, uid);
    }
}
