//! The replica spec of a role.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RestartPolicy;
use super::schema;

/// The replica specs of a job by role. A null value is kept, so that it can be reported. Only files contain such
/// values, because the API server drops them.
pub type ReplicaSpecs = BTreeMap<String, Option<ReplicaSpec>>;

/// The maximum number of replicas of a role.
pub const MAX_REPLICAS: i32 = 10_000;

/// The number of replicas of a role, their pod template and their restart policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaSpec {
    /// Number of replicas, from 0 to 10000. With 0 the job does not have the role. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "replicas_schema")]
    pub replicas: Option<i32>,

    /// Template of the pod of each replica. It must have the framework's container.
    #[serde(default)]
    #[schemars(schema_with = "schema::pod_template")]
    pub template: PodTemplateSpec,

    /// Action after the failure of a replica. With Always and OnFailure the kubelet restarts its containers, and the
    /// operator replaces a failed pod. With Never the failure fails the job. With ExitCode the operator replaces the pod
    /// after a retryable exit code, and any other exit code fails the job. Default: the default of the kind of job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_policy: Option<RestartPolicy>,
}

/// Returns the schema of `replicas`. The API server fills in the default, so that programs that read jobs see the
/// number of pods. A kind in which an unset number is not 1 removes the default with
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
