//! The metrics of the operator, for Prometheus.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use training_job::api::{ConditionType, JobStatus};

mod current;
mod families;
mod reasons;

pub(super) use current::{CountedJob, WaitingJob};
use families::{
    CauseLabel, Families, FrameworkLabel, JobLabels, ReasonLabels, ResourceLabel, ResultLabels, StateLabels,
};
pub use reasons::LostStory;
pub(super) use reasons::{DropCause, ErrorReason};

/// The metrics of an operator. Clones share their values.
///
/// The counters of jobs have the names and labels of the Go operator v1.8.1 (`pkg/common/metrics.go`). They count stored
/// changes of statuses, each change once.
#[derive(Clone, Debug, Default)]
pub struct Metrics(Arc<Families>);

impl Metrics {
    /// Registers all metrics.
    pub fn register(&self, registry: &mut Registry) {
        self.0.register(registry);
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
        let state = self.0.jobs.get_or_create_owned(&labels);
        let labels = JobLabels {
            job_namespace: labels.job_namespace,
            framework,
        };
        let stalled = self.0.stalled.get_or_create_owned(&labels);
        let is_stalled = status.is_some_and(|status| status.is(ConditionType::Stalled));
        CountedJob::new(state, is_stalled.then_some(stalled))
    }

    /// Records the time since the last progress of a watched replica.
    pub(super) fn read_output(&self, silent_for: Duration) {
        self.0.silence.observe(silent_for.as_secs_f64());
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

    /// Counts a job that is gone from the cluster, whoever deleted it.
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
    }

    /// Records that the server serves `resource`.
    pub(super) fn served(&self, resource: &str) {
        let label = ResourceLabel {
            resource: resource.to_owned(),
        };
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
