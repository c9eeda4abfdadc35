//! The MXJob on the wire, in both shapes that were ever in use.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::{CleanPodPolicy, ReplicaSpec, RunPolicy, SchedulingPolicy, SuccessPolicy};

use crate::{Compatibility, MXJobStatus};

/// A distributed job of Apache MXNet, TVM or BytePS.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kubeflow.org",
    version = "v1",
    kind = "MXJob",
    plural = "mxjobs",
    singular = "mxjob",
    namespaced,
    doc = "A distributed job of Apache MXNet, TVM or BytePS.",
    status = "MXJobStatus",
    derive = "PartialEq",
    printcolumn(name = "State", type_ = "string", json_path = ".status.conditions[-1:].type"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct MXJobSpec {
    /// What the job does: it trains a model, or it tunes kernels. Empty means `MXTrain`.
    #[serde(default = "training")]
    #[schemars(schema_with = "job_modes")]
    pub job_mode: String,

    /// The replicas by role: Scheduler, Server, Worker; TunerTracker, TunerServer, Tuner.
    #[serde(default)]
    pub mx_replica_specs: BTreeMap<String, Option<MXReplicaSpec>>,

    /// How the job runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_policy: Option<RunPolicy>,

    /// Which controller runs the job, as `runPolicy.managedBy`. It cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "training_job::api::schema::managed_by")]
    pub managed_by: Option<String>,

    /// Which workers must succeed; with `AllWorkers` the scheduler's end does not end the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_policy: Option<SuccessPolicy>,

    /// The operator whose manifest this is read as, where the two did not do the same. By `MXNetOperator`, the stand-alone
    /// one, the exit codes 130, 137, 138 and 143 restart a replica whose restart policy is `ExitCode`, and an unset
    /// `cleanPodPolicy` is `All`; by `TrainingOperator` all exit codes from 128 on restart it, and the operator's own default says
    /// which pods go. If unset, it is `MXNetOperator` for a job that is written under `v1beta1` or `v1alpha2`, and for one that
    /// has `cleanPodPolicy`, `ttlSecondsAfterFinished`, `activeDeadlineSeconds`, `backoffLimit` or `schedulingPolicy` at the
    /// top of its spec and none of them in `runPolicy`; for all others it is `TrainingOperator`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "compatibilities")]
    pub compatibility: String,

    /// As `runPolicy.cleanPodPolicy`, in manifests of the stand-alone mxnet-operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean_pod_policy: Option<CleanPodPolicy>,

    /// As `runPolicy.ttlSecondsAfterFinished`, in manifests of the stand-alone mxnet-operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ttl_seconds_after_finished: Option<i32>,

    /// As `runPolicy.activeDeadlineSeconds`, in manifests of the stand-alone mxnet-operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub active_deadline_seconds: Option<i64>,

    /// As `runPolicy.backoffLimit`, in manifests of the stand-alone mxnet-operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub backoff_limit: Option<i32>,

    /// As `runPolicy.schedulingPolicy`, in manifests of the stand-alone mxnet-operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling_policy: Option<SchedulingPolicy>,

    /// The scheduler of all pods whose templates name none, in the first manifests of the stand-alone
    /// mxnet-operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler_name: Option<String>,
}

/// The replicas of one role.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MXReplicaSpec {
    /// What every kind of job says of them.
    #[serde(flatten)]
    pub spec: ReplicaSpec,

    /// The key of tuner servers, in manifests of the stand-alone mxnet-operator; today it is the template's annotation
    /// `tuner-server-key`, which goes before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

impl AsRef<ReplicaSpec> for MXReplicaSpec {
    fn as_ref(&self) -> &ReplicaSpec {
        &self.spec
    }
}

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobMode {
    /// It trains a model.
    Train,
    /// It tunes kernels.
    Tune,
}

impl JobMode {
    pub(crate) const WORDS: [&str; 2] = ["MXTrain", "MXTune"];
}

/// Clients in Go send "" for what is unset.
fn job_modes(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let [train, tune] = JobMode::WORDS;
    schemars::json_schema!({ "type": "string", "enum": [train, tune, ""] })
}

fn training() -> String {
    JobMode::WORDS[0].to_owned()
}

fn compatibilities(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let [mxnet, training] = Compatibility::WORDS;
    schemars::json_schema!({ "type": "string", "enum": [mxnet, training, ""] })
}

impl MXJobSpec {
    /// What the job does, if `jobMode` is known.
    pub fn mode(&self) -> Option<JobMode> {
        match self.job_mode.as_str() {
            "" | "MXTrain" => Some(JobMode::Train),
            "MXTune" => Some(JobMode::Tune),
            _ => None,
        }
    }

    /// The `label` of a role, if it has one that is not empty.
    pub(crate) fn label(&self, role: &str) -> Option<&str> {
        let mut roles = self.mx_replica_specs.iter();
        let (_, spec) = roles.find(|(name, _)| name.eq_ignore_ascii_case(role))?;
        spec.as_ref()?.label.as_deref().filter(|label| !label.is_empty())
    }

    /// The run policy from both places; what `runPolicy` says counts.
    pub fn merged_run_policy(&self) -> RunPolicy {
        let nested = self.run_policy.clone().unwrap_or_default();
        let default_clean_up = self.compatibility_mode().clean_up();
        RunPolicy {
            clean_pod_policy: nested
                .clean_pod_policy
                .or(self.clean_pod_policy.clone())
                .or(default_clean_up),
            ttl_seconds_after_finished: nested
                .ttl_seconds_after_finished
                .or(self.ttl_seconds_after_finished),
            active_deadline_seconds: nested.active_deadline_seconds.or(self.active_deadline_seconds),
            backoff_limit: nested.backoff_limit.or(self.backoff_limit),
            scheduling_policy: nested.scheduling_policy.or(self.scheduling_policy.clone()),
            restart_scope: nested.restart_scope,
            layout: nested.layout,
            stable_address: nested.stable_address,
            managed_by: nested.managed_by,
            failure_policy: nested.failure_policy,
            success_policy: nested.success_policy,
            suspend: nested.suspend,
        }
    }
}
