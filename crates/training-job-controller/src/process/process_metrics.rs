//! The metrics of a process: those of its operator, its requests, its leadership and its resources.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use training_job_program::Program;

use super::api_metrics::ApiMetrics;
use super::exposition::{MetricDescription, describe, to_text_format};
use super::logs;
use super::resource_usage::ResourceUsage;
use crate::Metrics;

pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The metrics of a process. Clones share their values.
#[derive(Clone, Debug)]
pub(super) struct ProcessMetrics {
    pub(super) operator: Metrics,
    pub(super) api: ApiMetrics,
    leading: Gauge,
    lease_changes: Family<ChangeLabel, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ChangeLabel {
    change: &'static str,
}

const ACQUIRED: ChangeLabel = ChangeLabel { change: "acquired" };

const LOST: ChangeLabel = ChangeLabel { change: "lost" };

impl Default for ProcessMetrics {
    fn default() -> Self {
        let lease_changes = Family::<ChangeLabel, Counter>::default();
        for change in [ACQUIRED, LOST] {
            drop(lease_changes.get_or_create(&change));
        }
        Self {
            operator: Metrics::default(),
            api: ApiMetrics::default(),
            leading: Gauge::default(),
            lease_changes,
        }
    }
}

impl ProcessMetrics {
    /// Records that the process reconciles jobs from now on.
    pub(super) fn leads(&self) {
        self.leading.set(1);
    }

    /// Records that the process is a standby from now on.
    pub(super) fn stands_by(&self) {
        self.leading.set(0);
        self.operator.forget_missing_crds();
    }

    pub(super) fn lease_acquired(&self) {
        self.lease_changes.get_or_create(&ACQUIRED).inc();
    }

    pub(super) fn lease_lost(&self) {
        self.lease_changes.get_or_create(&LOST).inc();
    }

    /// Returns a registry with all metrics. Those of the process itself have no prefix, as in other programs.
    pub(super) fn registry(&self, program: &Program) -> Registry {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(ResourceUsage));
        let own = registry.sub_registry_with_prefix(program.metrics_prefix());
        self.operator.register(own);
        self.api.register(own);
        own.register(
            "leader", // training_operator_leader
            "1 while this process reconciles jobs, 0 while it is a standby or lacks the first lists",
            self.leading.clone(),
        );
        own.register(
            "lease_changes", // training_operator_lease_changes_total
            "Number of times that this process acquired or lost the lease",
            self.lease_changes.clone(),
        );
        own.register(
            "log_lines_lost", // training_operator_log_lines_lost_total
            "Number of log lines that could not be written to standard error",
            logs::lost(),
        );
        own.register(
            "build", // training_operator_build_info
            "The version of the program's library training-job-controller",
            Info::new([("version", VERSION)]),
        );
        registry
    }
}

/// Returns all metrics of a program that runs an operator, for its documentation.
pub fn metric_descriptions(program: &Program) -> Vec<MetricDescription> {
    let metrics = ProcessMetrics::default();
    metrics.operator.create_all();
    metrics.api.record("get", "pods", None, 0.0);
    let mut text = String::new();
    // Encoding into a string does not fail.
    let _ = encode(&mut text, &metrics.registry(program));
    describe(&to_text_format(&text))
}
