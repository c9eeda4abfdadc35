//! Jobs whose workers come and go: what torchrun is told of it.

use k8s_openapi::api::autoscaling::v2::MetricSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::schema;
use training_job::{FieldErrors, Rule, Topology, TrainingJob, any_with_replicas};

use crate::PyTorchJob;
use crate::environment::WORKER;

/// Where workers meet if the job does not say: at one of them.
const C10D: &str = "c10d";
const BACKENDS: [&str; 3] = [C10D, "etcd", "etcd-v2"];

const BOUNDS: [&str; 2] = [
    "must be at most maxReplicas",
    "lower it, or raise maxReplicas",
];

const TOO_MANY: [&str; 2] = [
    "must be at least the number of workers, because further workers would not train",
    "raise it, or use fewer workers",
];

/// How workers come and go, and where they meet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ElasticPolicy {
    /// The fewest workers that train together; as `maxReplicas` if unset, or with neither as many as there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub min_replicas: Option<i32>,

    /// The most workers that train together; as `minReplicas` if unset, or with neither as many as there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_replicas: Option<i32>,

    /// What keeps the list of workers: `c10d`, which needs nothing more, `etcd` or `etcd-v2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "backends")]
    pub rdzv_backend: Option<String>,

    /// The port where they meet; that of the workers if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub rdzv_port: Option<i32>,

    /// The host where they meet; worker 0 if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rdzv_host: Option<String>,

    /// The name under which they meet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rdzv_id: Option<String>,

    /// More settings of the backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rdzv_conf: Option<Vec<RdzvConf>>,

    /// Whether each worker trains by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standalone: Option<bool>,

    /// Processes per worker; the older name of the job's `nprocPerNode`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub n_proc_per_node: Option<i32>,

    /// How often torchrun starts the processes of a worker again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_restarts: Option<i32>,

    /// What an autoscaler goes by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::lean::<Vec<MetricSpec>>")]
    pub metrics: Option<Vec<MetricSpec>>,
}

/// A setting of the backend that keeps the list of workers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RdzvConf {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,

    /// What it is set to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// Clients in Go send "" for what is unset.
fn backends(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let [c10d, etcd, etcd_v2] = BACKENDS;
    schemars::json_schema!({ "type": "string", "enum": [c10d, etcd, etcd_v2, ""] })
}

impl ElasticPolicy {
    /// The fewest and the most workers that train together, in a job that has so many.
    pub fn bounds(&self, workers: u32) -> (u32, u32) {
        let [min, max] =
            [self.min_replicas, self.max_replicas].map(|n| n.and_then(|n| u32::try_from(n).ok()));
        let min_or = min.or(max).unwrap_or(workers);
        (min_or, max.unwrap_or(min_or))
    }

    /// What keeps the list of workers.
    pub(crate) fn backend(&self) -> &str {
        let named = self.rdzv_backend.as_deref();
        named.filter(|backend| !backend.is_empty()).unwrap_or(C10D)
    }

    pub(crate) fn check(&self, topology: &Topology<'_>, errors: &mut FieldErrors) {
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
        if let (Some(min), Some(max)) = (self.min_replicas, self.max_replicas)
            && min > max
        {
            errors.push("spec.elasticPolicy.minReplicas", BOUNDS[0], BOUNDS[1]);
        }
        let most = self
            .max_replicas
            .and_then(|n| u32::try_from(n).ok())
            .filter(|most| *most > 0);
        if most.is_some_and(|most| topology.replicas(WORKER) > most) {
            errors.push("spec.elasticPolicy.maxReplicas", TOO_MANY[0], TOO_MANY[1]);
        }
    }

    /// The same in CEL, as far as the schema does not say it.
    pub(crate) fn rules() -> [Rule; 2] {
        let bound = |field: &str| format!("self.?elasticPolicy.?{field}");
        let (min, max) = (bound("minReplicas"), bound("maxReplicas"));
        let in_order = format!("!{min}.hasValue() || !{max}.hasValue() || {min}.value() <= {max}.value()");
        let more = any_with_replicas(&PyTorchJob::FRAMEWORK, &[WORKER], &format!("> {max}.value()"));
        let enough = format!("!{max}.hasValue() || !{more}");
        [
            Rule::new(in_order, BOUNDS.join("; ")).at("elasticPolicy.minReplicas"),
            Rule::new(enough, TOO_MANY.join("; ")).at("elasticPolicy.maxReplicas"),
        ]
    }
}
