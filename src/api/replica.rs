//! What a job says of one role's replicas.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RestartPolicy;
use super::schema;

/// The replica specs of a job by role. A null value, which only a file can hold (the API server
/// drops it), is kept so that it can be reported.
pub type ReplicaSpecs = BTreeMap<String, Option<ReplicaSpec>>;

/// The most replicas a role may have.
pub const MAX_REPLICAS: i32 = 10_000;

/// The replicas of one role.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaSpec {
    /// How many; 1 if unset. 0 means that the role is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "replicas_schema")]
    pub replicas: Option<i32>,

    /// The pod that each replica gets.
    #[serde(default)]
    #[schemars(schema_with = "schema::pod_template")]
    pub template: PodTemplateSpec,

    /// What happens when a replica fails; the kind of job has a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_policy: Option<RestartPolicy>,
}

/// The API server fills in `1`, which is what an unset number means: programs that read jobs see how many pods there will
/// be. A kind in which it means something else removes the default by
/// [`schema::without_default_replicas`].
fn replicas_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "integer", "format": "int32", "minimum": 0, "maximum": MAX_REPLICAS, "default": 1
    })
}

impl AsRef<Self> for ReplicaSpec {
    fn as_ref(&self) -> &Self {
        self
    }
}
