//! The fields of an MxJob.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::{MAX_REPLICAS, schema};

use crate::status::{Counts, RoleStatusEntry, Status};

/// The values of `jobMode`.
pub(super) const MODES: [&str; 2] = ["local", "dist"];

/// A job of Apache MXNet in the format of deepinsight/mxnet-operator.
#[expect(clippy::duplicated_attributes, reason = "columns may be of one type")]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "mxnet.mlkube.io",
    version = "v1beta1",
    kind = "MxJob",
    plural = "mxjobs",
    singular = "mxjob",
    namespaced,
    doc = "A job of Apache MXNet in the format of deepinsight/mxnet-operator.",
    status = "MxJobStatus",
    derive = "PartialEq",
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct MxJobSpec {
    /// Part of the names of the job's pods and services: at most 8 lower-case letters and digits. Default: four
    /// characters derived from the job's UID. It cannot be changed.
    #[serde(default, rename = "RuntimeId", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub runtime_id: Option<String>,

    /// `local`: the job has one worker and no other replicas. `dist`: it has a scheduler, servers and workers.
    #[serde(default)]
    #[schemars(schema_with = "modes")]
    pub job_mode: String,

    /// The replicas, with one entry for each type.
    #[serde(default)]
    pub replica_specs: Vec<MxReplicaSpec>,
}

/// The replicas of one type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MxReplicaSpec {
    /// The number of replicas of this type. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_REPLICAS))]
    pub replicas: Option<i32>,

    /// The template of each replica's pod. With restart policy `Never`, any failure fails the job. With other
    /// policies, an exit code of 128 or more restarts the replica, unless the container ran out of memory, and a lower
    /// one fails the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::pod_template")]
    pub template: Option<PodTemplateSpec>,

    /// The port of the scheduler, from 1 to 65535. Default: 9091.
    #[serde(default, rename = "PsRootPort", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_535))]
    pub ps_root_port: Option<i32>,

    /// The type: `SCHEDULER`, `SERVER` or `WORKER`. Default: `WORKER`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mx_replica_type: Option<String>,
}

/// The status of an MxJob.
pub type MxJobStatus = Status<MxReplicaStatus>;

/// The state of the replicas of one type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MxReplicaStatus {
    #[serde(rename = "Mx_replica_type")]
    role: String,
    #[serde(flatten)]
    counts: Counts,
}

impl RoleStatusEntry for MxReplicaStatus {
    fn new(role: String, counts: Counts) -> Self {
        Self { role, counts }
    }

    fn parts(self) -> (String, Counts) {
        (self.role, self.counts)
    }
}

fn modes(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": MODES })
}
