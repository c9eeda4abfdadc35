//! The fields of an MXJob: those of the training operator, and those of the stand-alone mxnet-operator.

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
    /// The purpose of the job: `MXTrain` trains a model, `MXTune` tunes kernels. Default: `MXTrain`.
    #[serde(default = "training")]
    #[schemars(schema_with = "job_modes")]
    pub job_mode: String,

    /// The replicas by role: Scheduler, Server and Worker for `MXTrain`; TunerTracker, TunerServer and Tuner for
    /// `MXTune`.
    #[serde(default)]
    pub mx_replica_specs: BTreeMap<String, Option<MXReplicaSpec>>,

    /// The policies of the job, such as restarts, deadline, clean-up, gang scheduling and suspension. Default: all
    /// unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_policy: Option<RunPolicy>,

    /// The controller that runs the job; the same as `runPolicy.managedBy`. Default: this operator. It cannot be
    /// changed after the job's creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "training_job::api::schema::managed_by")]
    pub managed_by: Option<String>,

    /// The workers that must succeed. With `AllWorkers` all of them must, and the end of the scheduler does not end
    /// the job. Default: the scheduler decides, or without a scheduler the workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_policy: Option<SuccessPolicy>,

    /// The operator whose rules apply where the two operators differed. `MXNetOperator` is the stand-alone one: under
    /// restart policy `ExitCode`, the exit codes 130, 137, 138 and 143 restart a replica, and the default
    /// `cleanPodPolicy` is `All`. `TrainingOperator`: under restart policy `ExitCode`, exit codes of 128 or more
    /// restart a replica, and the default `cleanPodPolicy` is that of the operator's settings. Default:
    /// `MXNetOperator` for a job that is written under `v1beta1` or `v1alpha2`, and for a job that sets
    /// `cleanPodPolicy`, `ttlSecondsAfterFinished`, `activeDeadlineSeconds`, `backoffLimit` or `schedulingPolicy` at
    /// the top of its spec and none of them in `runPolicy`; otherwise `TrainingOperator`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "compatibilities")]
    pub compatibility: String,

    /// The same as `runPolicy.cleanPodPolicy`, for manifests of the stand-alone mxnet-operator. `runPolicy` takes
    /// precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean_pod_policy: Option<CleanPodPolicy>,

    /// The same as `runPolicy.ttlSecondsAfterFinished`, for manifests of the stand-alone mxnet-operator. `runPolicy`
    /// takes precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ttl_seconds_after_finished: Option<i32>,

    /// The same as `runPolicy.activeDeadlineSeconds`, for manifests of the stand-alone mxnet-operator. `runPolicy`
    /// takes precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub active_deadline_seconds: Option<i64>,

    /// The same as `runPolicy.backoffLimit`, for manifests of the stand-alone mxnet-operator. `runPolicy` takes
    /// precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub backoff_limit: Option<i32>,

    /// The same as `runPolicy.schedulingPolicy`, for manifests of the stand-alone mxnet-operator. `runPolicy` takes
    /// precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling_policy: Option<SchedulingPolicy>,

    /// The scheduler of all pods whose template names none, for manifests of the first stand-alone mxnet-operator.
    /// Default: the cluster's default scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler_name: Option<String>,
}

/// The replicas of one role.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MXReplicaSpec {
    /// The fields that all kinds of job share.
    #[serde(flatten)]
    pub spec: ReplicaSpec,

    /// The key under which tuner servers register, for manifests of the stand-alone mxnet-operator. The template's
    /// annotation `tuner-server-key` replaces this field and takes precedence. Default: no key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

impl AsRef<ReplicaSpec> for MXReplicaSpec {
    fn as_ref(&self) -> &ReplicaSpec {
        &self.spec
    }
}

/// The purpose of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobMode {
    /// The job trains a model.
    Train,
    /// The job tunes kernels.
    Tune,
}

impl JobMode {
    pub(crate) const WORDS: [&str; 2] = ["MXTrain", "MXTune"];
}

/// The enumeration contains the empty text, because clients in Go send it for an unset field.
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
    /// Returns the purpose of the job, or `None` if `jobMode` is unknown.
    pub fn mode(&self) -> Option<JobMode> {
        match self.job_mode.as_str() {
            "" | "MXTrain" => Some(JobMode::Train),
            "MXTune" => Some(JobMode::Tune),
            _ => None,
        }
    }

    /// Returns the `label` of a role, or `None` if it is unset or empty.
    pub(crate) fn label(&self, role: &str) -> Option<&str> {
        let mut roles = self.mx_replica_specs.iter();
        let (_, spec) = roles.find(|(name, _)| name.eq_ignore_ascii_case(role))?;
        spec.as_ref()?.label.as_deref().filter(|label| !label.is_empty())
    }

    /// Returns the run policy, merged from `runPolicy` and the top of the spec. `runPolicy` takes precedence.
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
            ..nested
        }
    }
}
