//! The families of metrics, with their names and descriptions.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;

use parking_lot::{Mutex, MutexGuard};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::current::{Namespaces, OldestWait, WaitTimes};
use super::reasons::{DropCause, LostStory};

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

/// Buckets for the time without progress, in seconds. Limits are from a quarter of a minute to some hours.
const SILENCE_BUCKETS: [f64; 10] = [
    15.0, 60.0, 180.0, 300.0, 600.0, 1_800.0, 3_600.0, 7_200.0, 14_400.0, 86_400.0,
];

#[derive(Debug)]
pub(super) struct Families {
    pub(super) created: Family<JobLabels, Counter>,
    pub(super) deleted: Family<JobLabels, Counter>,
    pub(super) successful: Family<JobLabels, Counter>,
    pub(super) failed: Family<JobLabels, Counter>,
    pub(super) restarted: Family<JobLabels, Counter>,
    pub(super) queued: Family<FrameworkLabel, Histogram>,
    pub(super) reconciles: Family<ResultLabels, Histogram>,
    pub(super) startup: Family<FrameworkLabel, Histogram>,
    pub(super) duration: Family<ResultLabels, Histogram>,
    pub(super) lists: Family<ResourceLabel, Counter>,
    pub(super) watch_failures: Family<ResourceLabel, Counter>,
    pub(super) absent: Family<ResourceLabel, Gauge>,
    pub(super) missing_crds: Mutex<BTreeSet<String>>,
    pub(super) jobs: Family<StateLabels, Gauge>,
    pub(super) stalled: Family<JobLabels, Gauge>,
    pub(super) silence: Histogram,
    /// The namespaces with series of their own in `jobs`.
    pub(super) namespaces: Namespaces,
    pub(super) waits: WaitTimes,
    pub(super) queue_depth: Gauge,
    pub(super) dropped_events: Family<CauseLabel, Counter>,
    pub(super) errors: Family<ReasonLabels, Counter>,
    pub(super) heard: Family<ResourceLabel, Gauge<f64, AtomicU64>>,
    pub(super) history_jobs: Gauge,
    pub(super) history_bytes: Gauge,
    pub(super) lost_stories: Family<CauseLabel, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct JobLabels {
    pub(super) job_namespace: String,
    pub(super) framework: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct FrameworkLabel {
    pub(super) framework: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ResultLabels {
    pub(super) framework: &'static str,
    pub(super) result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct StateLabels {
    pub(super) job_namespace: String,
    pub(super) framework: &'static str,
    pub(super) state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ReasonLabels {
    pub(super) framework: &'static str,
    pub(super) reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct CauseLabel {
    pub(super) cause: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ResourceLabel {
    pub(super) resource: String,
}

impl Families {
    /// Registers all metrics. The comments have their full names in the registry of `training-operator`; the prefix is
    /// that of the registry.
    pub(super) fn register(&self, registry: &mut Registry) {
        // The encoder appends `_total` to the names of counters. Names and help of the first five are the Go operator's.
        registry.register(
            "jobs_created", // training_operator_jobs_created_total
            "Counts number of jobs created",
            self.created.clone(),
        );
        registry.register(
            "jobs_deleted", // training_operator_jobs_deleted_total
            "Counts number of jobs deleted",
            self.deleted.clone(),
        );
        registry.register(
            "jobs_successful", // training_operator_jobs_successful_total
            "Counts number of jobs successful",
            self.successful.clone(),
        );
        registry.register(
            "jobs_failed", // training_operator_jobs_failed_total
            "Counts number of jobs failed",
            self.failed.clone(),
        );
        registry.register(
            "jobs_restarted", // training_operator_jobs_restarted_total
            "Counts number of jobs restarted",
            self.restarted.clone(),
        );
        registry.register(
            "jobs", // training_operator_jobs
            "Current number of jobs by state; the namespaces after the first 100 are counted as _other",
            self.jobs.clone(),
        );
        registry.register(
            "jobs_stalled", // training_operator_jobs_stalled
            "Current number of jobs with the condition Stalled; the namespaces after the first 100 are counted as _other",
            self.stalled.clone(),
        );
        registry.register(
            "output_silence_seconds", // training_operator_output_silence_seconds
            "Time since the last progress of a watched replica, at each read of its output, in seconds",
            self.silence.clone(),
        );
        registry.register_collector(Box::new(OldestWait(self.waits.clone())));
        registry.register(
            "queue_depth", // training_operator_queue_depth
            "Number of jobs that wait in the work queue",
            self.queue_depth.clone(),
        );
        registry.register(
            "reconcile_errors", // training_operator_reconcile_errors_total
            "Number of failed reconciles by reason",
            self.errors.clone(),
        );
        registry.register(
            "events_dropped", // training_operator_events_dropped_total
            "Number of events that were not stored: the job has too many, too many are queued, the call failed, or the \
             operator stopped",
            self.dropped_events.clone(),
        );
        registry.register(
            "queue_seconds", // training_operator_queue_seconds
            "Time a job waited in the work queue, in seconds",
            self.queued.clone(),
        );
        registry.register(
            "reconcile_seconds", // training_operator_reconcile_seconds
            "Duration of one reconcile, API calls included, in seconds",
            self.reconciles.clone(),
        );
        registry.register(
            "job_startup_seconds", // training_operator_job_startup_seconds
            "Time from the creation or resumption of a job to its condition Running, in seconds",
            self.startup.clone(),
        );
        registry.register(
            "job_duration_seconds", // training_operator_job_duration_seconds
            "Time from the start of a job to its end, in seconds",
            self.duration.clone(),
        );
        registry.register(
            "lists", // training_operator_lists_total
            "Number of complete lists of a resource",
            self.lists.clone(),
        );
        registry.register(
            "watch_failures", // training_operator_watch_failures_total
            "Number of failed lists and watches of a resource",
            self.watch_failures.clone(),
        );
        registry.register(
            "crd_missing", // training_operator_crd_missing
            "1 while the CRD of a resource is not installed and its jobs do not run, otherwise 0",
            self.absent.clone(),
        );
        registry.register(
            "watch_last_event_timestamp_seconds", // training_operator_watch_last_event_timestamp_seconds
            "Time of the last event or bookmark of a watch, or of its start before the first one, in seconds since the Unix epoch",
            self.heard.clone(),
        );
        registry.register(
            "history_jobs", // training_operator_history_jobs
            "Number of finished jobs whose stories are in the directory of --history",
            self.history_jobs.clone(),
        );
        registry.register(
            "history_bytes", // training_operator_history_bytes
            "Size of the stories in the directory of --history, in bytes",
            self.history_bytes.clone(),
        );
        registry.register(
            "stories_lost", // training_operator_stories_lost_total
            "Number of failures to keep the story of a finished job: too many are queued, or the file cannot be written",
            self.lost_stories.clone(),
        );
    }

    pub(super) fn missing_crds(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.missing_crds.lock()
    }
}

impl Default for Families {
    fn default() -> Self {
        Self {
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
            stalled: Family::default(),
            silence: Histogram::new(SILENCE_BUCKETS),
            namespaces: Namespaces::default(),
            waits: WaitTimes::default(),
            queue_depth: Gauge::default(),
            dropped_events: causes(DropCause::ALL.map(DropCause::as_str)),
            errors: Family::default(),
            heard: Family::default(),
            history_jobs: Gauge::default(),
            history_bytes: Gauge::default(),
            lost_stories: causes(LostStory::ALL.map(LostStory::as_str)),
        }
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
