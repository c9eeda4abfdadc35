//! Passes the events of the watches to the caches, and queues the jobs that they concern.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::Api;
use kube_follow::Event;
use tokio::sync::watch;
use tokio::time::Instant;

use training_job::api::labels;
use training_job::job::GangScheduler;
use training_job::plan::ChildKind;

use super::cache::children::OwnerRef;
use super::cache::jobs::{self, Jobs};
use super::cache::partial_child::Child;
use super::cache::partial_child::PartialChild;
use super::cache::stored_job::{RawJob, StoredJob};
use super::context::Context;
use super::operator::Operator;
use super::queue::Key;
use super::quota_queue::QUOTA_DELAY;
use super::reconciler::{FirstList, JobReconciler};

/// Time for which changes of a job's children are collected before the job is reconciled, because many change
/// together.
const COLLECT: Duration = Duration::from_millis(10);

/// Handles an event of the watch of jobs.
pub(super) fn on_job_event(
    reconciler: &JobReconciler,
    context: &Context,
    event: Event<RawJob>,
    listed: &watch::Sender<FirstList>,
) {
    match event {
        Event::ListStarted => reconciler.jobs().list_started(),
        Event::ListPage(version) => reconciler.jobs().list_page(version),
        // Objects from the server always have names; an empty name in a path would mean all objects.
        Event::Listed(job) | Event::Applied(job) if job.metadata.name.is_none() => {}
        Event::Listed(job) => store(reconciler, context, job, Jobs::listed),
        Event::ListDone => {
            let gone = reconciler.jobs().list_done();
            gone.iter()
                .for_each(|((namespace, _), uid)| reconciler.forget(context, namespace, uid));
            FirstList::complete(listed);
        }
        Event::Applied(job) => store(reconciler, context, job, Jobs::applied),
        Event::Deleted(job) => {
            let uid = reconciler.jobs().deleted(&job.metadata);
            reconciler.forget(context, &jobs::name(&job.metadata).0, &uid);
        }
        Event::Bookmark(version) => reconciler.jobs().bookmark(version),
        // No jobs exist while their kind is not installed. The operator still has to reconcile the jobs of other
        // kinds, also while it may not list those of this kind.
        Event::Absent => FirstList::complete(listed),
        Event::Forbidden(_) => FirstList::deny(listed),
        Event::Failed => {}
    }
}

/// Stores a job in the cache by `put`, which returns the UID of the job that had the name before, and queues it.
fn store(
    reconciler: &JobReconciler,
    context: &Context,
    job: RawJob,
    put: impl FnOnce(&mut Jobs, StoredJob) -> Option<String>,
) {
    let job = StoredJob::of(&reconciler.kind, job);
    let ((namespace, name), has_begun) = (jobs::name(job.meta()), job.has_begun());
    let replaced = put(&mut reconciler.jobs(), job);
    if let Some(uid) = replaced {
        reconciler.forget(context, &namespace, &uid);
    }
    let key = Key {
        kind: reconciler.number,
        namespace,
        name,
    };
    match has_begun {
        true => context.queue.add(key),
        false => context.queue.add_new(key),
    }
}

impl Operator {
    /// Watches the jobs of one kind forever, and records the state of the first list.
    pub(super) async fn watch_jobs(&self, reconciler: &JobReconciler, listed: watch::Sender<FirstList>) {
        let context = &self.context;
        let handle = |event| on_job_event(reconciler, context, event, &listed);
        let (client, resource) = (context.client.clone(), &reconciler.kind.resource);
        let api = match &context.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, resource),
            None => Api::all_with(client, resource),
        };
        context.watch(api, resource, None, false, handle).await;
    }

    /// Watches one kind of children of all kinds of jobs forever, and records the state of the first list.
    pub(super) async fn watch_children<C: Child>(&self, child: ChildKind, listed: watch::Sender<FirstList>) {
        let controllers: Vec<_> = self
            .kinds
            .iter()
            .flat_map(|k| k.kind.framework.controllers())
            .collect();
        let selector = format!("{} in ({})", labels::OPERATOR_NAME, controllers.join(","));
        let notifies_gangs = child == ChildKind::Pod
            && matches!(
                self.context.settings.gang_scheduler,
                Some(GangScheduler::Coscheduling(_))
            );
        let handle = |event: Event<PartialChild<C>>| {
            let mut freed = BTreeSet::new();
            if notifies_gangs || !self.context.quota_queue.is_empty() {
                freed.extend(self.frees_capacity(child, &event));
            }
            if notifies_gangs && !freed.is_empty() {
                let due = self.context.freed_capacity.pod_finished(self.context.clock.now());
                due.into_iter().for_each(|key| self.context.queue.add(key));
            }
            let is_list_done = matches!(event, Event::ListDone);
            let owners = self.on_child_event(child, event, &listed);
            if is_list_done {
                freed.extend(owners.iter().map(|owner| owner.namespace.clone()));
            }
            let in_turn = freed
                .iter()
                .flat_map(|namespace| self.context.quota_queue.freed(namespace, child));
            in_turn.for_each(|key| self.context.queue.add_at(key, Instant::now() + QUOTA_DELAY));
            for owner in owners {
                let kind = self.kinds.iter().position(|k| k.kind.name() == owner.kind);
                if let Some(kind) = kind {
                    let key = Key {
                        kind,
                        namespace: owner.namespace,
                        name: owner.name,
                    };
                    self.context.queue.add_at(key, Instant::now() + COLLECT);
                }
            }
        };
        let kind = child.object_kind();
        let client = self.context.client.clone();
        let api = match &self.context.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &kind),
            None => Api::all_with(client, &kind),
        };
        self.context
            .watch(api, &kind, Some(selector), self.is_optional(child), handle)
            .await;
    }

    /// Passes an event of the watch of children to the cache, and returns the owners that it concerns.
    fn on_child_event<C: Child>(
        &self,
        kind: ChildKind,
        event: Event<PartialChild<C>>,
        listed: &watch::Sender<FirstList>,
    ) -> Vec<OwnerRef> {
        let mut children = self.context.children();
        match event {
            Event::ListStarted => children.list_started(kind),
            Event::ListPage(version) => children.list_page(kind, version),
            Event::Listed(object) => return children.listed::<C>(kind, &object),
            Event::ListDone => {
                FirstList::complete(listed);
                return children.list_done::<C>(kind);
            }
            Event::Applied(object) => return children.applied::<C>(kind, &object),
            Event::Deleted(object) => return children.deleted::<C>(kind, &object).into_iter().collect(),
            Event::Bookmark(version) => children.bookmark(kind, version),
            // No objects exist while their kind is not installed. For a built-in kind, a missing resource proves
            // nothing, because a proxy between the server and this operator may have sent the response.
            Event::Absent if !kind.object_kind().is_built_in() => FirstList::complete(listed),
            Event::Forbidden(_) => FirstList::deny(listed),
            Event::Absent | Event::Failed => {}
        }
        Vec::new()
    }

    /// Returns the namespace in which a child no longer occupies capacity because of this event, if any.
    fn frees_capacity<C: Child>(&self, kind: ChildKind, event: &Event<PartialChild<C>>) -> Option<String> {
        let child = match event {
            Event::Deleted(child) => child,
            Event::Applied(child) | Event::Listed(child) => {
                let ends = child.record(kind).has_ended() && self.context.children().is_active(kind, child);
                Some(child).filter(|_| ends)?
            }
            _ => return None,
        };
        child.meta().namespace.clone()
    }
}
