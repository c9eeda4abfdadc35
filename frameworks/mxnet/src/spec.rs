//! The MXJob on the wire, in both shapes that were ever in use.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::{
    CleanPodPolicy, JobStatus, ReplicaSpecs, RunPolicy, SchedulingPolicy, SuccessPolicy,
};

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
    status = "JobStatus",
    derive = "PartialEq",
    printcolumn(name = "State", type_ = "string", json_path = ".status.conditions[-1:].type"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct MXJobSpec {
    /// What the job does: it trains a model, or it tunes kernels. Empty means `MXTrain`.
    #[serde(default)]
    #[schemars(schema_with = "job_modes")]
    pub job_mode: String,

    /// The replicas by role: Scheduler, Server, Worker; TunerTracker, TunerServer, Tuner.
    #[serde(default)]
    pub mx_replica_specs: ReplicaSpecs,

    /// How the job runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_policy: Option<RunPolicy>,

    /// Which workers must succeed; with `AllWorkers` the scheduler's end does not end the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_policy: Option<SuccessPolicy>,

    /// As `runPolicy.cleanPodPolicy`, in manifests of the stand-alone mxnet-operator; `All` if unset there.
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

impl MXJobSpec {
    /// What the job does, if `jobMode` is known.
    pub fn mode(&self) -> Option<JobMode> {
        match self.job_mode.as_str() {
            "" | "MXTrain" => Some(JobMode::Train),
            "MXTune" => Some(JobMode::Tune),
            _ => None,
        }
    }

    /// Whether the run policy is written as for the stand-alone operator: at the top of the spec, and
    /// not in `runPolicy`.
    pub fn is_inline(&self) -> bool {
        let nested = self.run_policy.clone().unwrap_or_default();
        let is_nested = RunPolicy {
            suspend: None,
            restart_scope: None,
            layout: None,
            ..nested
        } != RunPolicy::default();
        !is_nested
            && (self.clean_pod_policy.is_some()
                || self.ttl_seconds_after_finished.is_some()
                || self.active_deadline_seconds.is_some()
                || self.backoff_limit.is_some()
                || self.scheduling_policy.is_some())
    }

    /// Whether `field` of the run policy comes from the top of the spec.
    pub(crate) fn has_inline(&self, field: &str) -> bool {
        let at_top = match field {
            "cleanPodPolicy" => self.clean_pod_policy.is_some(),
            "ttlSecondsAfterFinished" => self.ttl_seconds_after_finished.is_some(),
            "activeDeadlineSeconds" => self.active_deadline_seconds.is_some(),
            "backoffLimit" => self.backoff_limit.is_some(),
            "schedulingPolicy" => self.scheduling_policy.is_some(),
            _ => false,
        };
        let nested = serde_json::to_value(&self.run_policy).unwrap_or_default();
        at_top && nested.get(field).is_none()
    }

    /// The run policy from both places; what `runPolicy` says counts.
    pub fn merged_run_policy(&self) -> RunPolicy {
        let nested = self.run_policy.clone().unwrap_or_default();
        let default_clean_up = self.is_inline().then_some(CleanPodPolicy::All);
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
            suspend: nested.suspend,
        }
    }
}
