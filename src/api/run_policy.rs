//! How a job runs: limits, clean-up, suspension.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CleanPodPolicy, FailurePolicy, JobSuccessPolicy, Layout, RestartScope};

/// How a job runs, whatever its roles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunPolicy {
    /// Which pods go when the job has ended; `Running` if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean_pod_policy: Option<CleanPodPolicy>,

    /// Seconds after its end at which the job is deleted; never if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ttl_seconds_after_finished: Option<i32>,

    /// Seconds after its start (or resumption) at which an unfinished job fails; never if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub active_deadline_seconds: Option<i64>,

    /// How many restarts the job may have before its next failure is final; no limit if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub backoff_limit: Option<i32>,

    /// What restarts together with a failed replica; the kind of job has a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_scope: Option<RestartScope>,

    /// How services and environment are laid out; Plain if unset. With Compact a job of many replicas has one service, and
    /// one ConfigMap for what is the same in its pods. It cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,

    /// True: the replica that the others dial has a service with an address of its own, which it keeps when it restarts; by
    /// its name only the ports are reached that its container declares. False: its name leads to its pod, as those of the
    /// other replicas do, on any port. The kind of job has a default. It is of no effect with layout Compact, nor on services
    /// that are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stable_address: Option<bool>,

    /// What follows from failures, before restart policies are asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,

    /// Whose success is the job's; the kind of job has a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_policy: Option<JobSuccessPolicy>,

    /// Gang scheduling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling_policy: Option<SchedulingPolicy>,

    /// Which controller runs the job; the training operator if unset. A job that another one runs is left alone. It cannot be
    /// changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::schema::managed_by")]
    pub managed_by: Option<String>,

    /// True: the job has no pods until it is false again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "suspend_schema")]
    pub suspend: Option<bool>,
}

impl RunPolicy {
    /// The controllers that may run a job: the training operator, and Kueue's for jobs that run in another cluster.
    pub const MANAGERS: [&str; 2] = ["kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"];

    /// The fields that the Go types of `kubeflow.org/v1` (v1.8.1) do not have. An annotation may stand for each of them, since
    /// clients with these types drop the fields and keep annotations. `managedBy` is none of them: a copy of the job in
    /// another cluster must not name the controller of the original.
    pub const ANNOTATED_FIELDS: [&str; 5] = [
        "failurePolicy",
        "successPolicy",
        "restartScope",
        "layout",
        "stableAddress",
    ];

    /// Whether another controller runs the job, so that the training operator leaves it alone.
    pub fn is_for_another_controller(&self) -> bool {
        self.managed_by
            .as_deref()
            .is_some_and(Self::is_another_controller)
    }

    /// Returns true if `manager`, the value of a field `managedBy`, names a controller that is not the training operator.
    pub fn is_another_controller(manager: &str) -> bool {
        !["", Self::MANAGERS[0]].contains(&manager)
    }
}

/// Gang scheduling of a job's pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SchedulingPolicy {
    /// Pods that must fit at once; all if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_available: Option<i32>,
    /// The queue of the gang scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Resources that must be free at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::schema::lean::<BTreeMap<String, Quantity>>")]
    pub min_resources: Option<BTreeMap<String, Quantity>>,
    /// The priority class of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class: Option<String>,
    /// Seconds that the scheduler may take for the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_timeout_seconds: Option<i32>,
}

/// The API server fills in `false` when a run policy is present, as under the Go operator.
fn suspend_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "boolean", "default": false })
}
