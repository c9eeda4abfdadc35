//! The reconciler of one kind: the cached jobs, and a record for each job; and the data of one reconcile.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use training_job::api::{ConditionType, JobStatus};
use training_job::job::Kind;
use training_job::plan::Plan;
use training_job::plan::observed::{NameHolder, Observed};

use super::cache::jobs::Jobs;
use super::cache::stored_job::StoredJob;
use super::context::Context;
use super::job_state::JobState;
use super::metrics::Metrics;
use super::validate::Validated;

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

    /// Returns true if jobs can be reconciled with what the list has shown.
    pub(super) fn suffices(self, may_be_denied: bool) -> bool {
        self == Self::Complete || may_be_denied && self == Self::Denied
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

/// Reconciles the jobs of one kind.
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
        context.output.forget(uid);
    }
}

/// The data that the steps of one reconcile share.
pub(super) struct Reconcile<'a> {
    pub(super) reconciler: &'a JobReconciler,
    pub(super) context: &'a Context,
    pub(super) job: &'a StoredJob,
    /// The status of the cached job, without its invalid values.
    pub(super) stored_status: JobStatus,
    pub(super) validated: Validated<'a>,
    pub(super) state: &'a mut JobState,
}

impl Reconcile<'_> {
    /// Records the time since which an active job has no pods. It is that of its start, or now if its pods are gone.
    pub(super) fn record_wait(&mut self, children: &Observed) {
        let status = &self.stored_status;
        let is_active = !status.is_finished() && !status.is(ConditionType::Suspended);
        if !is_active || !children.pods.is_empty() {
            self.state.without_pods = None;
        } else if self.state.without_pods.is_none() {
            let had_pods = status.restart_count > 0 || status.condition(ConditionType::Running).is_some();
            let created = self.job.meta().creation_timestamp.as_ref();
            let started = status.start_time.as_ref().or(created).filter(|_| !had_pods);
            let since = started.map_or_else(|| self.context.clock.now(), |time| time.0);
            self.state.without_pods = Some(Arc::new(self.context.metrics.wait_for_pods(since)));
        }
    }

    /// Plans from the current children, and from the holders of the names that have been read.
    pub(super) fn plan_with(&self, read: &BTreeMap<String, NameHolder>) -> Plan {
        let mut children = self.context.observe(self.job);
        if !read.is_empty() {
            Arc::make_mut(&mut children).read.clone_from(read);
        }
        self.plan(&children)
    }

    pub(super) fn plan(&self, children: &Observed) -> Plan {
        let now = self.context.clock.now();
        self.validated.plan(self.job, &self.stored_status, children, now)
    }
}
