//! A policy that the API accepts and that has no effect.

use k8s_openapi::api::autoscaling::v2::MetricSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::schema;

/// Bounds for the number of workers. It has no effect, as under the Go operator, and exists so that manifests that set
/// it are accepted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ElasticPolicy {
    /// The minimum number of workers. It has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,

    /// The maximum number of workers. It has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<i32>,

    /// The maximum number of restarts of processes. It has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_restarts: Option<i32>,

    /// The metrics of an autoscaler. They have no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::lean::<Vec<MetricSpec>>")]
    pub metrics: Option<Vec<MetricSpec>>,
}
