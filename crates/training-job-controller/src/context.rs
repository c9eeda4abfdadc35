//! The state that all reconcilers share: client, timeouts, caches, queue, clock.

use std::sync::Arc;
use std::time::Duration;

use kube::{Api, Client, Resource};

use kube_follow::CallTimeout;
use kube_follow::{Event, Watch};
use parking_lot::{Mutex, MutexGuard};
use training_job::api::JobStatus;
use training_job::job::Settings;
use training_job::plan::observed::Observed;

use super::cache::children::Children;
use super::cache::stored_job::StoredJob;
use super::calls::CallLimiter;
use super::clock::Clock;
use super::events::Recorder;
use super::finished::{FinishedJob, FinishedJobs};
use super::freed_capacity::FreedCapacity;
use super::metrics::{LostStory, Metrics};
use super::missing_permissions::MissingPermissions;
use super::output::OutputReader;
use super::queue::Queue;
use super::quota_queue::QuotaQueue;

pub(super) struct Context {
    pub(super) client: Client,
    pub(super) timeout: CallTimeout,
    pub(super) watch_timeout: Duration,
    pub(super) namespace: Option<String>,
    pub(super) settings: Settings,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) queue: Queue,
    pub(super) children: Mutex<Children>,
    pub(super) calls: CallLimiter,
    pub(super) recorder: Recorder,
    pub(super) metrics: Metrics,
    pub(super) freed_capacity: FreedCapacity,
    pub(super) quota_queue: QuotaQueue,
    pub(super) missing_permissions: MissingPermissions,
    pub(super) finished_jobs: Option<Arc<dyn FinishedJobs>>,
    pub(super) output: OutputReader,
}

impl Context {
    /// Lists and watches the objects of a kind forever, and updates the metrics of the watch. An operator that may not read
    /// optional objects works all the same.
    pub(super) async fn watch<K>(
        &self,
        api: Api<K>,
        kind: &K::DynamicType,
        labels: Option<String>,
        is_optional: bool,
        mut handle: impl FnMut(Event<K>),
    ) where
        K: Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    {
        let resource = match K::group(kind) {
            group if group.is_empty() => K::plural(kind).into_owned(),
            group => format!("{}.{group}", K::plural(kind)),
        };
        // CRDs of Kubernetes projects have groups that end with `.x-k8s.io`.
        let is_built_in = !K::group(kind).contains('.') || K::group(kind).ends_with(".k8s.io");
        self.metrics.add_resource(&resource, !is_built_in);
        // A watch that never receives anything must become stale as well.
        self.metrics.event_received(&resource, self.clock.now());
        let watch = Watch {
            resource: resource.clone(),
            labels,
            call_timeout: self.timeout,
            silence_timeout: self.watch_timeout,
            ..Watch::of(api, kind)
        };
        // True after an answer that a resource that is served and permitted does not give.
        let mut is_refused = false;
        watch
            .run(|event| {
                match &event {
                    Event::Failed => self.metrics.watch_failed(&resource),
                    Event::Forbidden(problem) if is_optional => {
                        if !std::mem::replace(&mut is_refused, true) {
                            self.metrics.absent(&resource);
                            self.missing_permissions.note_optional(&resource, problem);
                        }
                    }
                    Event::Forbidden(problem) => {
                        is_refused = true;
                        self.metrics.watch_failed(&resource);
                        self.missing_permissions.add("list,watch", &resource, problem);
                    }
                    Event::Absent => {
                        is_refused = true;
                        self.metrics.absent(&resource);
                    }
                    Event::ListStarted => {}
                    _ => {
                        self.metrics.event_received(&resource, self.clock.now());
                        // A watch continues without a list when the server permits it again.
                        if std::mem::take(&mut is_refused) {
                            self.metrics.served(&resource);
                            self.missing_permissions.remove(&resource);
                        }
                        if matches!(event, Event::ListDone) {
                            self.metrics.listed(&resource);
                        }
                    }
                }
                handle(event);
            })
            .await;
    }

    /// Returns the cached children of a job.
    pub(super) fn observe(&self, job: &StoredJob) -> Arc<Observed> {
        let (namespace, uid) = (&job.meta().namespace, &job.meta().uid);
        let mut observed = self.children().observe(
            namespace.as_deref().unwrap_or_default(),
            uid.as_deref().unwrap_or_default(),
        );
        if let Some(output) = self.output.records(uid.as_deref().unwrap_or_default()) {
            Arc::make_mut(&mut observed).output = output;
        }
        if let Some(last_freed_at) = self.freed_capacity.last_freed_at() {
            Arc::make_mut(&mut observed).capacity_freed_at = Some(last_freed_at);
        }
        observed
    }

    /// Offers a job that has finished. Returns false if it must be offered again later.
    pub(super) fn offer_finished(
        &self,
        job: &StoredJob,
        status: &JobStatus,
        children: &Arc<Observed>,
    ) -> bool {
        let Some(finished_jobs) = &self.finished_jobs else {
            return true;
        };
        let finished = FinishedJob::new(job, status, children.clone());
        if !finished_jobs.wants(&finished.uid, finished.finished_at) {
            return true;
        }
        let is_added = finished_jobs.add(finished);
        if !is_added {
            self.metrics.story_lost(LostStory::Queue);
        }
        is_added
    }

    /// Keeps the jobs that have finished, forever.
    pub(super) async fn keep_finished_jobs(&self) {
        if let Some(finished_jobs) = &self.finished_jobs {
            finished_jobs.run(self.client.clone(), self.metrics.clone()).await;
        }
        std::future::pending().await
    }

    pub(super) fn children(&self) -> MutexGuard<'_, Children> {
        self.children.lock()
    }
}
