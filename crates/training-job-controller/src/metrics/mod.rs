//! The metrics of the operator, for Prometheus.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use training_job::api::{ConditionType, JobStatus};

mod current;
mod reasons;

pub(super) use current::{CountedJob, WaitingJob};
use current::{Namespaces, OldestWait, WaitTimes};
pub use reasons::LostStory;
pub(super) use reasons::{DropCause, ErrorReason};

/// Buckets for reconciles and queue times, in seconds.
const RECONCILE_BUCKETS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// Buckets for the start of a job, in seconds. A start includes pulled images and new nodes.
const STARTUP_BUCKETS: [f64; 10] = [1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0];

/// Buckets for the duration of a job, in seconds: from half a minute to two weeks.
const DURATION_BUCKETS: [f64; 10] = [
    30.0,
    120.0,
    600.0,
    1_800.0,
    3_600.0,
    14_400.0,
    43_200.0,
    86_400.0,
    345_600.0,
    1_209_600.0,
];

/// The metrics of an operator. Clones share their values.
///
/// The counters of jobs have the names and labels of the Go operator v1.8.1 (`pkg/common/metrics.go`). They count stored
/// changes of statuses, each change once.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Families>);

#[derive(Debug)]
struct Families {
    created: Family<JobLabels, Counter>,
    deleted: Family<JobLabels, Counter>,
    successful: Family<JobLabels, Counter>,
    failed: Family<JobLabels, Counter>,
    restarted: Family<JobLabels, Counter>,
    queued: Family<FrameworkLabel, Histogram>,
    reconciles: Family<ResultLabels, Histogram>,
    startup: Family<FrameworkLabel, Histogram>,
    duration: Family<ResultLabels, Histogram>,
    lists: Family<ResourceLabel, Counter>,
    watch_failures: Family<ResourceLabel, Counter>,
    absent: Family<ResourceLabel, Gauge>,
    missing_crds: Mutex<BTreeSet<String>>,
    jobs: Family<StateLabels, Gauge>,
    /// The namespaces with series of their own in `jobs`.
    namespaces: Namespaces,
    waits: WaitTimes,
    queue_depth: Gauge,
    dropped_events: Family<CauseLabel, Counter>,
    errors: Family<ReasonLabels, Counter>,
    heard: Family<ResourceLabel, Gauge<f64, AtomicU64>>,
    history_jobs: Gauge,
    history_bytes: Gauge,
    lost_stories: Family<CauseLabel, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct JobLabels {
    job_namespace: String,
    framework: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FrameworkLabel {
    framework: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    framework: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    job_namespace: String,
    framework: &'static str,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    framework: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CauseLabel {
    cause: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResourceLabel {
    resource: String,
}

impl Families {
    fn missing_crds(&self) -> MutexGuard<'_, BTreeSet<String>> {
        // No code that holds the lock can leave the set half-changed.
        self.missing_crds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self(Arc::new(Families {
            created: Family::default(),
            deleted: Family::default(),
            successful: Family::default(),
            failed: Family::default(),
            restarted: Family::default(),
            queued: Family::new_with_constructor(|| Histogram::new(RECONCILE_BUCKETS)),
            reconciles: Family::new_with_constructor(|| Histogram::new(RECONCILE_BUCKETS)),
            startup: Family::new_with_constructor(|| Histogram::new(STARTUP_BUCKETS)),
            duration: Family::new_with_constructor(|| Histogram::new(DURATION_BUCKETS)),
            lists: Family::default(),
            watch_failures: Family::default(),
            absent: Family::default(),
            missing_crds: Mutex::default(),
            jobs: Family::default(),
            namespaces: Namespaces::default(),
            waits: WaitTimes::default(),
            queue_depth: Gauge::default(),
            dropped_events: causes(DropCause::ALL.map(DropCause::as_str)),
            errors: Family::default(),
            heard: Family::default(),
            history_jobs: Gauge::default(),
            history_bytes: Gauge::default(),
            lost_stories: causes(LostStory::ALL.map(LostStory::as_str)),
        }))
    }
}

impl Metrics {
    /// Registers all metrics. The comments have their full names in the registry of `training-operator`; the prefix is
    /// that of the registry.
    pub fn register(&self, registry: &mut Registry) {
        let all = &self.0;
        // The encoder appends `_total` to the names of counters. Names and help of the first five are the Go operator's.
        registry.register(
            "jobs_created", // training_operator_jobs_created_total
            "Counts number of jobs created",
            all.created.clone(),
        );
        registry.register(
            "jobs_deleted", // training_operator_jobs_deleted_total
            "Counts number of jobs deleted",
            all.deleted.clone(),
        );
        registry.register(
            "jobs_successful", // training_operator_jobs_successful_total
            "Counts number of jobs successful",
            all.successful.clone(),
        );
        registry.register(
            "jobs_failed", // training_operator_jobs_failed_total
            "Counts number of jobs failed",
            all.failed.clone(),
        );
        registry.register(
            "jobs_restarted", // training_operator_jobs_restarted_total
            "Counts number of jobs restarted",
            all.restarted.clone(),
        );
        registry.register(
            "jobs", // training_operator_jobs
            "Current number of jobs by state; the namespaces after the first 100 are counted as _other",
            all.jobs.clone(),
        );
        registry.register_collector(Box::new(OldestWait(all.waits.clone())));
        registry.register(
            "queue_depth", // training_operator_queue_depth
            "Number of jobs that wait in the work queue",
            all.queue_depth.clone(),
        );
        registry.register(
            "reconcile_errors", // training_operator_reconcile_errors_total
            "Number of failed reconciles by reason",
            all.errors.clone(),
        );
        registry.register(
            "events_dropped", // training_operator_events_dropped_total
            "Number of events that were not stored: the job has too many, too many are queued, the call failed, or the \
             operator stopped",
            all.dropped_events.clone(),
        );
        registry.register(
            "queue_seconds", // training_operator_queue_seconds
            "Time a job waited in the work queue, in seconds",
            all.queued.clone(),
        );
        registry.register(
            "reconcile_seconds", // training_operator_reconcile_seconds
            "Duration of one reconcile, API calls included, in seconds",
            all.reconciles.clone(),
        );
        registry.register(
            "job_startup_seconds", // training_operator_job_startup_seconds
            "Time from the creation or resumption of a job to its condition Running, in seconds",
            all.startup.clone(),
        );
        registry.register(
            "job_duration_seconds", // training_operator_job_duration_seconds
            "Time from the start of a job to its end, in seconds",
            all.duration.clone(),
        );
        registry.register(
            "lists", // training_operator_lists_total
            "Number of complete lists of a resource",
            all.lists.clone(),
        );
        registry.register(
            "watch_failures", // training_operator_watch_failures_total
            "Number of failed lists and watches of a resource",
            all.watch_failures.clone(),
        );
        registry.register(
            "crd_missing", // training_operator_crd_missing
            "1 while the CRD of a resource is not installed and its jobs do not run, otherwise 0",
            all.absent.clone(),
        );
        registry.register(
            "watch_last_event_timestamp_seconds", // training_operator_watch_last_event_timestamp_seconds
            "Time of the last event or bookmark of a watch, in seconds since the Unix epoch",
            all.heard.clone(),
        );
        registry.register(
            "history_jobs", // training_operator_history_jobs
            "Number of finished jobs whose stories are in the directory of --history",
            all.history_jobs.clone(),
        );
        registry.register(
            "history_bytes", // training_operator_history_bytes
            "Size of the stories in the directory of --history, in bytes",
            all.history_bytes.clone(),
        );
        registry.register(
            "stories_lost", // training_operator_stories_lost_total
            "Number of failures to keep the story of a finished job: too many are queued, or the file cannot be written",
            all.lost_stories.clone(),
        );
    }

    /// Creates the counters of a kind and the histograms of its jobs, so that the first increase of each is visible.
    /// `namespace` is that of the operator, or empty.
    pub(super) fn add_kind(&self, framework: &'static str, namespace: &str) {
        self.add_namespace(framework, namespace);
        drop(self.0.startup.get_or_create(&FrameworkLabel { framework }));
        for result in ["succeeded", "failed"] {
            let labels = ResultLabels { framework, result };
            drop(self.0.duration.get_or_create(&labels));
        }
        for reason in ErrorReason::ALL {
            drop(self.0.errors.get_or_create(&ReasonLabels {
                framework,
                reason: reason.as_str(),
            }));
        }
    }

    /// Creates the counters of jobs of a kind in a namespace.
    fn add_namespace(&self, framework: &'static str, namespace: &str) {
        let all = &self.0;
        let labels = JobLabels {
            job_namespace: namespace.to_owned(),
            framework,
        };
        if all.created.get(&labels).is_some() {
            return;
        }
        for family in [
            &all.created,
            &all.deleted,
            &all.successful,
            &all.failed,
            &all.restarted,
        ] {
            drop(family.get_or_create(&labels));
        }
    }

    /// Creates the metrics of a resource. Only one with a CRD can be missing.
    pub(super) fn add_resource(&self, resource: &str, has_crd: bool) {
        let label = ResourceLabel {
            resource: resource.to_owned(),
        };
        drop(self.0.lists.get_or_create(&label));
        drop(self.0.watch_failures.get_or_create(&label));
        if has_crd {
            drop(self.0.absent.get_or_create(&label));
        }
    }

    /// Counts a cached job until the returned value is dropped.
    pub(super) fn count_job(
        &self,
        framework: &'static str,
        namespace: &str,
        status: Option<&JobStatus>,
    ) -> CountedJob {
        self.add_namespace(framework, namespace);
        let labels = StateLabels {
            job_namespace: self.0.namespaces.label(namespace),
            framework,
            state: state(status),
        };
        CountedJob::new(self.0.jobs.get_or_create_owned(&labels))
    }

    /// Records that a job waits for its first pod since this time, until the returned value is dropped.
    pub(super) fn wait_for_pods(&self, since: Timestamp) -> WaitingJob {
        self.0.waits.add(since)
    }

    /// Returns the resources whose CRDs are missing.
    #[cfg(feature = "process")]
    pub(super) fn missing_crds(&self) -> Vec<String> {
        self.0.missing_crds().iter().cloned().collect()
    }

    /// Forgets which CRDs are missing, when this process stops to watch them.
    #[cfg(feature = "process")]
    pub(super) fn forget_missing_crds(&self) {
        for resource in std::mem::take(&mut *self.0.missing_crds()) {
            self.0.absent.get_or_create(&ResourceLabel { resource }).set(0);
        }
    }

    /// Creates one sample of each metric.
    #[cfg(feature = "process")]
    pub(super) fn create_all(&self) {
        self.add_kind("", "");
        self.add_resource("", true);
        self.event_received("", Timestamp::UNIX_EPOCH);
        drop(self.count_job("", "", None));
        self.reconciled("", Duration::ZERO, Duration::ZERO, false);
    }

    /// Returns the gauge of the number of jobs in the work queue.
    pub(super) fn queue_depth(&self) -> Gauge {
        self.0.queue_depth.clone()
    }

    /// Records the number and the size of the stories that are kept.
    pub fn history_has(&self, jobs: usize, bytes: u64) {
        self.0.history_jobs.set(i64::try_from(jobs).unwrap_or(i64::MAX));
        self.0.history_bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Counts a finished job whose story was not kept.
    pub fn story_lost(&self, cause: LostStory) {
        let label = CauseLabel {
            cause: cause.as_str(),
        };
        self.0.lost_stories.get_or_create(&label).inc();
    }

    pub(super) fn event_dropped(&self, cause: DropCause, events: usize) {
        let label = CauseLabel {
            cause: cause.as_str(),
        };
        let events = u64::try_from(events).unwrap_or(u64::MAX);
        self.0.dropped_events.get_or_create(&label).inc_by(events);
    }

    pub(super) fn reconcile_failed(&self, framework: &'static str, reason: ErrorReason) {
        let labels = ReasonLabels {
            framework,
            reason: reason.as_str(),
        };
        self.0.errors.get_or_create(&labels).inc();
    }

    /// Counts the changes from one stored status to the next.
    pub(super) fn status_stored(
        &self,
        framework: &'static str,
        namespace: &str,
        created: Option<Timestamp>,
        old: &JobStatus,
        new: &JobStatus,
    ) {
        let labels = || JobLabels {
            job_namespace: namespace.to_owned(),
            framework,
        };
        let all = &self.0;
        let became = |type_| new.is(type_) && !old.is(type_);
        let seen = |status: &JobStatus| status.condition(ConditionType::Created).is_some();
        if seen(new) && !seen(old) {
            all.created.get_or_create(&labels()).inc();
        }
        let restarts = u64::try_from(new.restart_count.saturating_sub(old.restart_count)).unwrap_or(0);
        if restarts > 0 {
            all.restarted.get_or_create(&labels()).inc_by(restarts);
        }
        if became(ConditionType::Running) && new.restart_count == 0 {
            let resumed = old.condition(ConditionType::Suspended).is_some();
            let from = if resumed { start(new) } else { created };
            if let Some(seconds) = seconds(from, running_since(new)) {
                let label = FrameworkLabel { framework };
                all.startup.get_or_create(&label).observe(seconds);
            }
        }
        let ends = [
            (ConditionType::Succeeded, "succeeded", &all.successful),
            (ConditionType::Failed, "failed", &all.failed),
        ];
        for (type_, result, family) in ends {
            if became(type_) {
                family.get_or_create(&labels()).inc();
                let end = new.completion_time.as_ref().map(|t| t.0);
                if let Some(seconds) = seconds(start(new), end) {
                    let labels = ResultLabels { framework, result };
                    all.duration.get_or_create(&labels).observe(seconds);
                }
            }
        }
    }

    /// Counts a job that was deleted at the end of its time to live.
    pub(super) fn deleted(&self, framework: &'static str, namespace: &str) {
        let labels = JobLabels {
            job_namespace: namespace.to_owned(),
            framework,
        };
        self.0.deleted.get_or_create(&labels).inc();
    }

    pub(super) fn reconciled(&self, framework: &'static str, waited: Duration, took: Duration, failed: bool) {
        let label = FrameworkLabel { framework };
        self.0.queued.get_or_create(&label).observe(waited.as_secs_f64());
        let result = if failed { "error" } else { "success" };
        let labels = ResultLabels { framework, result };
        self.0
            .reconciles
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
    }

    /// Counts a complete list of `resource`.
    pub(super) fn listed(&self, resource: &str) {
        let label = ResourceLabel {
            resource: resource.to_owned(),
        };
        self.0.lists.get_or_create(&label).inc();
        if let Some(absent) = self.0.absent.get(&label) {
            absent.set(0);
            self.0.missing_crds().remove(resource);
        }
    }

    /// Records the time of the last event of the watch of `resource`.
    pub(super) fn event_received(&self, resource: &str, now: Timestamp) {
        let label = ResourceLabel {
            resource: resource.to_owned(),
        };
        self.0
            .heard
            .get_or_create(&label)
            .set(now.as_duration().as_secs_f64());
    }

    /// Records that the server does not serve `resource`, because its CRD is missing. A built-in resource is always there,
    /// so that for one the watch has failed.
    pub(super) fn absent(&self, resource: &str) {
        let label = ResourceLabel {
            resource: resource.to_owned(),
        };
        match self.0.absent.get(&label) {
            Some(absent) => {
                absent.set(1);
                self.0.missing_crds().insert(resource.to_owned());
            }
            None => self.watch_failed(resource),
        }
    }

    /// Counts a failed list or watch of `resource`.
    pub(super) fn watch_failed(&self, resource: &str) {
        let label = ResourceLabel {
            resource: resource.to_owned(),
        };
        self.0.watch_failures.get_or_create(&label).inc();
    }
}

/// Returns a counter with all of these causes.
fn causes(causes: impl IntoIterator<Item = &'static str>) -> Family<CauseLabel, Counter> {
    let family = Family::<CauseLabel, Counter>::default();
    for cause in causes {
        drop(family.get_or_create(&CauseLabel { cause }));
    }
    family
}

/// Returns the state of a job: the condition that `kubectl get` shows, or `New` before the first status.
fn state(status: Option<&JobStatus>) -> &'static str {
    let states = [
        ConditionType::Failed,
        ConditionType::Succeeded,
        ConditionType::Suspended,
        ConditionType::Restarting,
        ConditionType::Running,
        ConditionType::Created,
    ];
    let state = states
        .into_iter()
        .find(|type_| status.is_some_and(|s| s.is(*type_)));
    state.map_or("New", ConditionType::as_str)
}

fn start(status: &JobStatus) -> Option<Timestamp> {
    status.start_time.as_ref().map(|t| t.0)
}

fn running_since(status: &JobStatus) -> Option<Timestamp> {
    let running = status.condition(ConditionType::Running)?;
    running.last_transition_time.as_ref().map(|t| t.0)
}

/// Returns the seconds between two times, if both are known, and 0 if the clock was set back.
fn seconds(from: Option<Timestamp>, to: Option<Timestamp>) -> Option<f64> {
    Some(to?.duration_since(from?).as_secs_f64().max(0.0))
}

#[cfg(test)]
mod tests;
