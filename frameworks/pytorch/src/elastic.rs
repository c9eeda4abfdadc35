//! The policy of elastic jobs, whose number of workers may change under torchrun.

use k8s_openapi::api::autoscaling::v2::MetricSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::schema;
use training_job::{Check, FieldErrors, TrainingJob, any_with_replicas};

use crate::PyTorchJob;
use crate::environment::WORKER;

/// The default backend. Its server runs in one of the workers.
const C10D: &str = "c10d";
const BACKENDS: [&str; 3] = [C10D, "etcd", "etcd-v2"];

/// The bounds for the number of workers, and the place of their rendezvous.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ElasticPolicy {
    /// The minimum number of workers that train together, at least 1 and at most `maxReplicas`. Default:
    /// `maxReplicas`, or the number of workers if that is also unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub min_replicas: Option<i32>,

    /// The maximum number of workers that train together, at least 1. Default: `minReplicas`, or the number of workers
    /// if that is also unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_replicas: Option<i32>,

    /// The rendezvous backend, which stores the list of workers. `c10d` runs in a worker; `etcd` and `etcd-v2` need a
    /// server. Default: `c10d`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "backends")]
    pub rdzv_backend: Option<String>,

    /// The port of the rendezvous, from 1 to 65535. Default: the port of the workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub rdzv_port: Option<i32>,

    /// The host of the rendezvous. Default: worker 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rdzv_host: Option<String>,

    /// The name of the rendezvous. Default: that of torchrun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rdzv_id: Option<String>,

    /// Further settings of the rendezvous backend. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rdzv_conf: Option<Vec<RdzvConf>>,

    /// True if each worker trains by itself, without a rendezvous with the others. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standalone: Option<bool>,

    /// The number of processes per worker, at least 1; an older name of `spec.nprocPerNode`. Only one of the two may
    /// be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub n_proc_per_node: Option<i32>,

    /// The maximum number of times that torchrun restarts the processes of a worker, at least 0. Default: that of
    /// torchrun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_restarts: Option<i32>,

    /// The metrics of a HorizontalPodAutoscaler, which changes the number of workers between `minReplicas` and
    /// `maxReplicas`. Default: no autoscaler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::lean::<Vec<MetricSpec>>")]
    pub metrics: Option<Vec<MetricSpec>>,
}

/// A setting of the rendezvous backend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RdzvConf {
    /// The name of the setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,

    /// The value of the setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// The enumeration contains the empty text, because clients in Go send it for an unset field.
fn backends(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let [c10d, etcd, etcd_v2] = BACKENDS;
    schemars::json_schema!({ "type": "string", "enum": [c10d, etcd, etcd_v2, ""] })
}

impl ElasticPolicy {
    /// Returns the minimum and the maximum number of workers that train together, for a job with `workers` workers.
    pub fn bounds(&self, workers: u32) -> (u32, u32) {
        let [min, max] =
            [self.min_replicas, self.max_replicas].map(|n| n.and_then(|n| u32::try_from(n).ok()));
        let min_or = min.or(max).unwrap_or(workers);
        (min_or, max.unwrap_or(min_or))
    }

    pub(crate) fn backend(&self) -> &str {
        let named = self.rdzv_backend.as_deref();
        named.filter(|backend| !backend.is_empty()).unwrap_or(C10D)
    }

    pub(crate) fn check(&self, errors: &mut FieldErrors) {
        let mut at_least = |field: &str, value: Option<i32>, min: i64| {
            errors.check_range(format!("spec.elasticPolicy.{field}"), value, min..);
        };
        at_least("minReplicas", self.min_replicas, 1);
        at_least("maxReplicas", self.max_replicas, 1);
        at_least("nProcPerNode", self.n_proc_per_node, 1);
        at_least("maxRestarts", self.max_restarts, 0);
        errors.check_range("spec.elasticPolicy.rdzvPort", self.rdzv_port, 1..=65535);
        if !BACKENDS.contains(&self.backend()) {
            errors.unknown_word("spec.elasticPolicy.rdzvBackend", self.backend(), &BACKENDS);
        }
    }
}

impl PyTorchJob {
    /// Returns a part of the elastic policy, if it is set.
    pub(crate) fn elastic<T>(&self, part: fn(&ElasticPolicy) -> Option<T>) -> Option<T> {
        self.spec.elastic_policy.as_ref().and_then(part)
    }
}

/// Returns the checks of several fields.
pub(crate) fn checks() -> [Check<PyTorchJob>; 2] {
    let bound = |field: &str| format!("self.?elasticPolicy.?{field}");
    let (min, max) = (bound("minReplicas"), bound("maxReplicas"));
    let in_order = format!("!{min}.hasValue() || !{max}.hasValue() || {min}.value() <= {max}.value()");
    let more = any_with_replicas(&PyTorchJob::FRAMEWORK, &[WORKER], &format!("> {max}.value()"));
    let enough = format!("!{max}.hasValue() || !{more}");
    [
        Check::field(
            "elasticPolicy.minReplicas",
            "must be at most maxReplicas",
            "lower it, or raise maxReplicas",
            in_order,
            |job: &PyTorchJob, _| {
                let bounds = job.elastic(|policy| policy.min_replicas.zip(policy.max_replicas));
                bounds.is_none_or(|(min, max)| min <= max)
            },
        ),
        Check::field(
            "elasticPolicy.maxReplicas",
            "must be at least the number of workers, because further workers would not train",
            "raise it, or use fewer workers",
            enough,
            |job, topology| {
                let max = job.elastic(|policy| policy.max_replicas);
                // Another check rejects a maximum below 1.
                max.is_none_or(|max| max < 1 || i64::from(topology.replicas(WORKER)) <= max.into())
            },
        ),
    ]
}
