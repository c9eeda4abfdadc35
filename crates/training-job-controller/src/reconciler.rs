//! The state of the reconciler of one kind: the cached jobs, and a record for each job.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use training_job::job::{ObjectKind, TrainingJob};

use super::cache::jobs::Jobs;
use super::context::Context;
use super::job_state::JobState;
use super::metrics::Metrics;
use super::queue::Key;

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

/// Reconciles the jobs of one kind, independent of its Rust type.
pub(super) trait Reconciler: Send + Sync {
    /// The name of the kind, as in owner references.
    fn kind(&self) -> String;
    /// The value of the label that selects the children of its jobs in a watch.
    fn controller(&self) -> &'static str;
    /// The kinds of objects that its jobs have in addition to pods and services.
    fn objects(&self) -> Vec<ObjectKind>;
    /// Watches the jobs forever, and records the state of the first list.
    fn watch<'a>(&'a self, context: &'a Context, listed: watch::Sender<FirstList>) -> Boxed<'a>;
    /// Reconciles one job, and queues it again if another reconcile is due. `waited` is the time that it spent in the
    /// queue.
    fn reconcile<'a>(&'a self, context: &'a Context, key: &'a Key, waited: Duration) -> Boxed<'a>;
}

pub(super) type Boxed<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Reconciles the jobs of type `J`.
pub(super) struct JobReconciler<J> {
    /// The index of the kind in the operator's list.
    pub(super) number: usize,
    jobs: Mutex<Jobs<J>>,
    /// Job states by UID.
    states: Mutex<HashMap<String, JobState>>,
}

impl<J: TrainingJob> JobReconciler<J> {
    /// Creates the reconciler of the kind with this number, and its metrics.
    pub(super) fn new(number: usize, metrics: &Metrics) -> Self {
        Self {
            number,
            jobs: Mutex::new(Jobs::new(metrics.clone())),
            states: Mutex::default(),
        }
    }

    pub(super) fn jobs(&self) -> MutexGuard<'_, Jobs<J>> {
        self.jobs.lock()
    }

    pub(super) fn states(&self) -> MutexGuard<'_, HashMap<String, JobState>> {
        self.states.lock()
    }

    /// Removes the state and children of a deleted job.
    pub(super) fn forget(&self, context: &Context, namespace: &str, uid: &str) {
        if self.states().remove(uid).is_some() {
            context.metrics.deleted(J::FRAMEWORK.name, namespace);
        }
        context.children().forget(namespace, uid);
    }
}
