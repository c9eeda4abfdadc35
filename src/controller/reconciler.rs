//! What the reconciling of a kind's jobs holds: their cache, and what is remembered of each.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::job::{ObjectKind, TrainingJob};

use super::cache::jobs::Jobs;
use super::context::Context;
use super::job_state::JobState;
use super::queue::Key;

/// What reconciles the jobs of one kind, whatever its type.
pub(super) trait Reconciler: Send + Sync {
    /// The kind's name, as in owner references.
    fn kind(&self) -> String;
    /// The value of the label by which the children of its jobs are watched.
    fn controller(&self) -> &'static str;
    /// What its jobs have beside pods and services.
    fn objects(&self) -> Vec<ObjectKind>;
    /// Watches the jobs for ever; says when the first list is complete.
    fn watch<'a>(&'a self, context: &'a Context, listed: watch::Sender<bool>) -> Boxed<'a>;
    /// Reconciles one job that has waited in the queue for so long, and puts it back if another reconcile is due.
    fn reconcile<'a>(&'a self, context: &'a Context, key: &'a Key, waited: Duration) -> Boxed<'a>;
}

pub(super) type Boxed<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Reconciles the jobs of type `J`.
pub(super) struct JobReconciler<J> {
    /// The kind's place among those of the operator.
    pub(super) number: usize,
    jobs: Mutex<Jobs<J>>,
    /// By UID.
    states: Mutex<HashMap<String, JobState>>,
}

impl<J: TrainingJob> JobReconciler<J> {
    pub(super) fn new(number: usize) -> Self {
        Self {
            number,
            jobs: Mutex::default(),
            states: Mutex::default(),
        }
    }

    pub(super) fn jobs(&self) -> MutexGuard<'_, Jobs<J>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn states(&self) -> MutexGuard<'_, HashMap<String, JobState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a job that is gone.
    pub(super) fn forget(&self, context: &Context, namespace: &str, uid: &str) {
        self.states().remove(uid);
        context.children().forget(namespace, uid);
    }
}
