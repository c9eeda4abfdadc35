//! The run policy of a job: limits, clean-up, suspension.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CleanPodPolicy, FailurePolicy, JobSuccessPolicy, Layout, ProgressPolicy, RestartScope};

/// Settings of a job as a whole: limits, clean-up, restarts, scheduling and suspension.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunPolicy {
    /// Pods to delete when the job has ended. All deletes every pod and service, Running deletes the pods that still
    /// run with their services, and None deletes nothing. Default: Running, unless the operator or the kind of job has
    /// another default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean_pod_policy: Option<CleanPodPolicy>,

    /// Seconds from the end of the job in which other containers of a replica may continue after the framework's
    /// container has ended, at least 0. The pod is deleted then, or earlier at the job's deadline. With cleanPodPolicy
    /// All it is deleted at the end of the job, and with None never. Default: 600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub sidecar_grace_period_seconds: Option<i32>,

    /// Seconds from the end of the job to its deletion, at least 0. Default: the job is not deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ttl_seconds_after_finished: Option<i32>,

    /// Seconds from the start or resumption of the job to its failure, if it has not ended by then, at least 0.
    /// Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub active_deadline_seconds: Option<i64>,

    /// Maximum number of restarts of the job, at least 0. The next failure after them is final. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub backoff_limit: Option<i32>,

    /// Replicas that restart together when one fails: only the failed replica, all replicas of its role, or all
    /// replicas of the job. Default: the scope of the operator, or else that of the kind of job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_scope: Option<RestartScope>,

    /// Layout of the job's services and environment variables. With Plain each replica has a service of its own and its
    /// whole environment in its pod. With Compact all replicas share one service, and a ConfigMap holds the common part
    /// of their environments, which makes jobs with many replicas smaller. Immutable. Default: Plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,

    /// Gives the replica to which the others connect a service with a cluster IP, which stays the same when the replica
    /// restarts. Through this service only the ports that the container declares are reachable. If false, the service
    /// is headless, so that all ports are reachable, as for the other replicas. Has no effect with layout Compact, nor
    /// on existing services. Default: the default of the kind of job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stable_address: Option<bool>,

    /// Actions after failures. They take precedence over the restart policies of the roles. Default: only the restart
    /// policies apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,

    /// Replicas whose success makes the job succeed. Default: the rule of the kind of job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_policy: Option<JobSuccessPolicy>,

    /// Finds a job that hangs by the output of its replicas, and shows its progress. Default: no output is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressPolicy>,

    /// Settings for gang scheduling. They have an effect only if the operator has a gang scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling_policy: Option<SchedulingPolicy>,

    /// Controller that runs the job. The training operator ignores a job of another controller. Immutable. Default: the
    /// training operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::schema::managed_by")]
    pub managed_by: Option<String>,

    /// Suspends the job: its pods are deleted, and new ones are created when the field is false again. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "suspend_schema")]
    pub suspend: Option<bool>,
}

impl RunPolicy {
    /// The controllers that may run a job: the training operator, and that of Kueue for jobs in another cluster.
    pub const MANAGERS: [&str; 2] = ["kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"];

    /// The fields that the Go types of `kubeflow.org/v1` (v1.8.1) do not have. Clients with these types drop the fields
    /// but keep annotations, so each field has an annotation. `managedBy` has none, because a copy of the job in
    /// another cluster must not name the controller of the original.
    pub const ANNOTATED_FIELDS: [&str; 7] = [
        "failurePolicy",
        "successPolicy",
        "restartScope",
        "layout",
        "stableAddress",
        "sidecarGracePeriodSeconds",
        "progress",
    ];

    /// Returns true if another controller runs the job, so that the training operator ignores it.
    pub fn is_for_another_controller(&self) -> bool {
        self.managed_by
            .as_deref()
            .is_some_and(Self::is_another_controller)
    }

    /// Returns true if `manager`, the value of a field `managedBy`, names a controller that is not the training
    /// operator.
    pub fn is_another_controller(manager: &str) -> bool {
        !["", Self::MANAGERS[0]].contains(&manager)
    }
}

/// Gang scheduling of a job's pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SchedulingPolicy {
    /// Minimum number of pods that the gang scheduler must place together, at least 0. Default: all pods of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_available: Option<i32>,
    /// Queue of the gang scheduler (Volcano). Immutable. Default: the queue "default".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Resources that must be free before the gang scheduler places the pods. Default: the requests of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::schema::lean::<BTreeMap<String, Quantity>>")]
    pub min_resources: Option<BTreeMap<String, Quantity>>,
    /// Priority class of the job's PodGroup (Volcano).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class: Option<String>,
    /// Seconds in which the scheduler must place the job's PodGroup (coscheduling plugin). Default: the scheduler's
    /// own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_timeout_seconds: Option<i32>,
}

/// The API server fills in `false` when a run policy is present, as under the Go operator.
fn suspend_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "boolean", "default": false })
}
