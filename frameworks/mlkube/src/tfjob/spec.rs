//! The TfJob on the wire, in the two spellings that its fields have had.

use k8s_openapi::api::core::v1::{PodTemplateSpec, Volume, VolumeMount};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::{MAX_REPLICAS, schema};

use crate::status::{Counts, OfRole, Status};

/// The values of `tensorboard.serviceType`.
pub(super) const SERVICE_TYPES: [&str; 3] = ["ClusterIP", "NodePort", "LoadBalancer"];

/// A job of TensorFlow as the first operator for it had it.
#[allow(clippy::duplicated_attributes, reason = "columns may be of one type")]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "mlkube.io",
    version = "v1beta1",
    kind = "TfJob",
    plural = "tfjobs",
    singular = "tfjob",
    namespaced,
    doc = "A job of TensorFlow as the first operator for it had it.",
    status = "TfJobStatus",
    derive = "PartialEq",
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct TfJobSpec {
    /// Part of the names of the job's pods and services. If unset, four characters that follow from the job's UID.
    #[serde(default, rename = "RuntimeId", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub runtime_id: Option<String>,

    /// The same in another spelling.
    #[serde(default, rename = "runtimeid", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub runtime_id_lower: Option<String>,

    /// The replicas, an entry for each type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replica_specs: Vec<TfReplicaSpec>,

    /// The same in another spelling.
    #[serde(default, rename = "replica_specs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "any_objects")]
    pub replica_specs_snake: Vec<TfReplicaSpec>,

    /// The image of parameter servers without a template, and of TensorBoard; `tensorflow/tensorflow:1.3.0` if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tf_image: Option<String>,

    /// TensorBoard beside the job, from its start until it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensorboard: Option<TensorBoard>,
}

/// The replicas of one type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TfReplicaSpec {
    /// How many; 1 if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_REPLICAS))]
    pub replicas: Option<i32>,

    /// The pod that each replica gets; a PS without one serves parameters. With the restart policy `Never` a failure fails
    /// the job; else exit codes from 128 on restart, unless the container was out of memory, and lower ones fail the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::pod_template")]
    pub template: Option<PodTemplateSpec>,

    /// The port at which each replica is found; 2222 if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_535))]
    pub tf_port: Option<i32>,

    /// The same in another spelling.
    #[serde(default, rename = "tf_port", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_535))]
    pub tf_port_snake: Option<i32>,

    /// `MASTER`, `PS` or `WORKER`; `MASTER` if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tf_replica_type: Option<String>,

    /// The same in another spelling.
    #[serde(default, rename = "tf_replica_type", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub tf_replica_type_snake: Option<String>,

    /// Whether the template is the one that the old operator filled in for a PS without one: a server takes its place.
    #[serde(default, rename = "IsDefaultPS", skip_serializing_if = "Option::is_none")]
    pub is_default_ps: Option<bool>,
}

/// TensorBoard beside a job: a pod, and a service at port 80.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TensorBoard {
    /// Where the job writes its logs.
    pub log_dir: String,

    /// Volumes of its pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::lean::<Vec<Volume>>")]
    pub volumes: Option<Vec<Volume>>,

    /// Where they are mounted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::lean::<Vec<VolumeMount>>")]
    pub volume_mounts: Option<Vec<VolumeMount>>,

    /// The type of its service; `ClusterIP` if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "service_types")]
    pub service_type: Option<String>,
}

/// The status of a TfJob.
pub type TfJobStatus = Status<TfReplicaStatus>;

/// The replicas of one type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TfReplicaStatus {
    #[serde(rename = "tf_replica_type")]
    role: String,
    #[serde(flatten)]
    counts: Counts,
}

impl OfRole for TfReplicaStatus {
    fn new(role: String, counts: Counts) -> Self {
        Self { role, counts }
    }

    fn parts(self) -> (String, Counts) {
        (self.role, self.counts)
    }
}

impl TfJobSpec {
    /// The entries, in whatever spelling.
    pub fn entries(&self) -> impl Iterator<Item = &TfReplicaSpec> {
        self.replica_specs.iter().chain(&self.replica_specs_snake)
    }

    pub(super) fn own_runtime_id(&self) -> Option<&str> {
        self.runtime_id.as_deref().or(self.runtime_id_lower.as_deref())
    }
}

impl TensorBoard {
    /// The type of its service. The empty text, which older clusters exported, is as good as unset.
    pub(super) fn service_type(&self) -> &str {
        let type_ = self.service_type.as_deref().filter(|type_| !type_.is_empty());
        type_.unwrap_or(SERVICE_TYPES[0])
    }
}

impl TfReplicaSpec {
    /// The type, in whatever spelling.
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

/// What is described once is not described again.
fn any_objects(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    })
}
