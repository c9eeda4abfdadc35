//! The fields of a TfJob. Some fields have two spellings.

use k8s_openapi::api::core::v1::{PodTemplateSpec, Volume, VolumeMount};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::{MAX_REPLICAS, schema};

use crate::status::{Counts, RoleStatusEntry, Status};

/// The values of `tensorboard.serviceType`.
pub(super) const SERVICE_TYPES: [&str; 3] = ["ClusterIP", "NodePort", "LoadBalancer"];

/// A job of TensorFlow in the format of the first TensorFlow operator.
#[expect(clippy::duplicated_attributes, reason = "columns may be of one type")]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "mlkube.io",
    version = "v1beta1",
    kind = "TfJob",
    plural = "tfjobs",
    singular = "tfjob",
    namespaced,
    doc = "A job of TensorFlow in the format of the first TensorFlow operator.",
    status = "TfJobStatus",
    derive = "PartialEq",
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct TfJobSpec {
    /// Part of the names of the job's pods and services: at most 8 lower-case letters and digits. Default: four
    /// characters derived from the job's UID. It cannot be changed.
    #[serde(default, rename = "RuntimeId", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub runtime_id: Option<String>,

    /// Another spelling of `RuntimeId`.
    #[serde(default, rename = "runtimeid", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub runtime_id_lower: Option<String>,

    /// The replicas, with one entry for each type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replica_specs: Vec<TfReplicaSpec>,

    /// Another spelling of `replicaSpecs`.
    #[serde(default, rename = "replica_specs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "any_objects")]
    pub replica_specs_snake: Vec<TfReplicaSpec>,

    /// The image of parameter servers without a template, and of TensorBoard. Default: `tensorflow/tensorflow:1.3.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tf_image: Option<String>,

    /// TensorBoard for the job, which runs from the job's start until the job is deleted. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensorboard: Option<TensorBoard>,
}

/// The replicas of one type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TfReplicaSpec {
    /// The number of replicas of this type. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_REPLICAS))]
    pub replicas: Option<i32>,

    /// The template of each replica's pod. A PS without a template runs the operator's own parameter server. With
    /// restart policy `Never`, any failure fails the job. With other policies, an exit code of 128 or more restarts
    /// the replica, unless the container ran out of memory, and a lower one fails the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::pod_template")]
    pub template: Option<PodTemplateSpec>,

    /// The port of each replica, from 1 to 65535. Default: 2222.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_535))]
    pub tf_port: Option<i32>,

    /// Another spelling of `tfPort`.
    #[serde(default, rename = "tf_port", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_535))]
    pub tf_port_snake: Option<i32>,

    /// The type: `MASTER`, `PS` or `WORKER`. Default: `MASTER`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tf_replica_type: Option<String>,

    /// Another spelling of `tfReplicaType`.
    #[serde(default, rename = "tf_replica_type", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub tf_replica_type_snake: Option<String>,

    /// True if the old operator filled in the template of a PS without one. The operator's own parameter server then
    /// replaces the template. Default: false.
    #[serde(default, rename = "IsDefaultPS", skip_serializing_if = "Option::is_none")]
    pub is_default_ps: Option<bool>,
}

/// TensorBoard for a job: a pod, and a service at port 80.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TensorBoard {
    /// The directory of the logs that the job writes.
    pub log_dir: String,

    /// The volumes of TensorBoard's pod. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::lean::<Vec<Volume>>")]
    pub volumes: Option<Vec<Volume>>,

    /// The mounts of the volumes in TensorBoard's container. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::lean::<Vec<VolumeMount>>")]
    pub volume_mounts: Option<Vec<VolumeMount>>,

    /// The type of TensorBoard's service. Default: `ClusterIP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "service_types")]
    pub service_type: Option<String>,
}

/// The status of a TfJob.
pub type TfJobStatus = Status<TfReplicaStatus>;

/// The state of the replicas of one type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TfReplicaStatus {
    #[serde(rename = "tf_replica_type")]
    role: String,
    #[serde(flatten)]
    counts: Counts,
}

impl RoleStatusEntry for TfReplicaStatus {
    fn new(role: String, counts: Counts) -> Self {
        Self { role, counts }
    }

    fn parts(self) -> (String, Counts) {
        (self.role, self.counts)
    }
}

impl TfJobSpec {
    /// Returns the entries in both spellings.
    pub fn entries(&self) -> impl Iterator<Item = &TfReplicaSpec> {
        self.replica_specs.iter().chain(&self.replica_specs_snake)
    }

    pub(super) fn own_runtime_id(&self) -> Option<&str> {
        self.runtime_id.as_deref().or(self.runtime_id_lower.as_deref())
    }
}

impl TensorBoard {
    /// Returns the type of the service. An empty text, which older clusters exported, counts as unset.
    pub(super) fn service_type(&self) -> &str {
        let type_ = self.service_type.as_deref().filter(|type_| !type_.is_empty());
        type_.unwrap_or(SERVICE_TYPES[0])
    }
}

impl TfReplicaSpec {
    /// Returns the type in either spelling.
    pub fn role(&self) -> &str {
        let role = self.tf_replica_type.as_deref();
        role.or(self.tf_replica_type_snake.as_deref()).unwrap_or("MASTER")
    }

    pub(super) fn port(&self) -> Option<i32> {
        self.tf_port.or(self.tf_port_snake)
    }
}

fn service_types(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let types: Vec<_> = SERVICE_TYPES.into_iter().chain([""]).collect();
    schemars::json_schema!({ "type": "string", "enum": types })
}

/// Leaves out the schema of the items, which `replicaSpecs` already describes.
fn any_objects(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    })
}
