//! The metrics of the operator, for Prometheus.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use training_job::api::{ConditionType, JobStatus};

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
    heard: Family<ResourceLabel, Gauge<f64, AtomicU64>>,
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
struct ResourceLabel {
    resource: String,
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
            heard: Family::default(),
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
            "queue_seconds", // training_operator_queue_seconds
            "Time that a job waited in the work queue, in seconds",
            all.queued.clone(),
        );
        registry.register(
            "reconcile_seconds", // training_operator_reconcile_seconds
            "Duration of a reconcile, API calls included, in seconds",
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
        self.absent(resource, false);
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

    /// Records whether the server lacks `resource`.
    pub(super) fn absent(&self, resource: &str, is_absent: bool) {
        let label = ResourceLabel {
            resource: resource.to_owned(),
        };
        self.0.absent.get_or_create(&label).set(is_absent.into());
    }

    /// Counts a failed list or watch of `resource`.
    pub(super) fn watch_failed(&self, resource: &str) {
        let label = ResourceLabel {
            resource: resource.to_owned(),
        };
        self.0.watch_failures.get_or_create(&label).inc();
    }
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
mod tests {
    use prometheus_client::encoding::text::encode;
    use serde_json::json;

    use super::*;
    use training_job::api::FailureRecord;

    fn status(types: &[&str], restarts: i32) -> JobStatus {
        let conditions: Vec<_> = types
            .iter()
            .map(|t| json!({"type": t, "status": "True", "lastTransitionTime": "2026-01-01T00:00:07Z"}))
            .collect();
        serde_json::from_value(json!({
            "conditions": conditions,
            "restartCount": restarts,
            "startTime": "2026-01-01T00:00:00Z",
            "completionTime": "2026-01-01T00:01:40Z",
        }))
        .unwrap()
    }

    #[test]
    fn a_job_that_reached_a_limit_counts_as_failed() {
        let metrics = Metrics::default();
        let mut failed = status(&["Created", "Failed"], 1);
        failed.failure = Some(FailureRecord {
            reason: "BackoffLimitExceeded".to_owned(),
            ..FailureRecord::default()
        });
        metrics.status_stored("any", "team", None, &status(&["Created", "Running"], 1), &failed);
        let mut registry = Registry::with_prefix("training_operator");
        metrics.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let line = r#"training_operator_jobs_failed_total{job_namespace="team",framework="any"} 1"#;
        assert!(text.lines().any(|l| l == line), "no {line} in\n{text}");
    }

    #[test]
    fn each_change_counts_once() {
        let metrics = Metrics::default();
        let created = Some("2026-01-01T00:00:00Z".parse().unwrap());
        let life = [
            status(&[], 0),
            status(&["Created"], 0),
            status(&["Created", "Running"], 0),
            status(&["Created", "Restarting"], 2),
            status(&["Created", "Running"], 2),
            status(&["Created", "Succeeded"], 2),
            status(&["Created", "Succeeded"], 2),
        ];
        for pair in life.windows(2) {
            metrics.status_stored("any", "team", created, &pair[0], &pair[1]);
        }
        metrics.deleted("any", "team");
        let mut registry = Registry::with_prefix("training_operator");
        metrics.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let has = |line: &str| assert!(text.lines().any(|l| l == line), "no {line} in\n{text}");
        let labels = r#"{job_namespace="team",framework="any"}"#;
        has(&format!("training_operator_jobs_created_total{labels} 1"));
        has(&format!("training_operator_jobs_restarted_total{labels} 2"));
        has(&format!("training_operator_jobs_successful_total{labels} 1"));
        has(&format!("training_operator_jobs_deleted_total{labels} 1"));
        has(r#"training_operator_job_startup_seconds_sum{framework="any"} 7.0"#);
        has(r#"training_operator_job_duration_seconds_sum{framework="any",result="succeeded"} 100.0"#);
        assert!(!text.contains("jobs_failed_total{"), "{text}");
    }
}
