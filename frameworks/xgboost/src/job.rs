//! The kind XGBoostJob as the library sees it.

use k8s_openapi::api::core::v1::EnvVar;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::{JobStatus, ReplicaSpecs, RunPolicy};
use training_job::{
    Check, Framework, Outcome, Replica, Replicas, Role, RoleDefinition, RoleSpecs, Scope, Topology,
    TrainingJob,
};

use crate::environment::{self, MASTER, WORKER};

/// A distributed job of XGBoost or LightGBM.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kubeflow.org",
    version = "v1",
    kind = "XGBoostJob",
    plural = "xgboostjobs",
    singular = "xgboostjob",
    namespaced,
    doc = "A distributed job of XGBoost or LightGBM.",
    status = "JobStatus",
    derive = "PartialEq",
    printcolumn(name = "State", type_ = "string", json_path = ".status.conditions[-1:].type"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct XGBoostJobSpec {
    /// The replicas by role: one Master, which is rank 0, and Workers.
    #[serde(default)]
    pub xgb_replica_specs: ReplicaSpecs,

    /// The policies of the job, such as restarts, deadline, clean-up, gang scheduling and suspension. Default: all
    /// unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_policy: Option<RunPolicy>,

    /// The controller that runs the job; the same as `runPolicy.managedBy`. Default: this operator. It cannot be
    /// changed after the job's creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "training_job::api::schema::managed_by")]
    pub managed_by: Option<String>,
}

impl TrainingJob for XGBoostJob {
    const FRAMEWORK: Framework = Framework::new("xgboost", "xgboostjob-controller")
        .port("xgboostjob-port", 9999)
        .roles(
            "xgbReplicaSpecs",
            &[
                RoleDefinition::new(MASTER).at_most(1),
                RoleDefinition::new(WORKER),
            ],
        );

    fn replica_specs(&self) -> RoleSpecs<'_> {
        RoleSpecs::map(&self.spec.xgb_replica_specs)
    }

    fn run_policy(&self) -> RunPolicy {
        self.spec.run_policy.clone().unwrap_or_default()
    }

    fn managed_by(&self) -> Option<&str> {
        self.spec.managed_by.as_deref()
    }

    fn status(&self) -> Option<&JobStatus> {
        self.status.as_ref()
    }

    fn env(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
        environment::variables(topology, replica)
    }

    fn checks() -> Vec<Check<Self>> {
        vec![Check::any_of(
            &[MASTER],
            "must have a Master, because it is rank 0 and the workers connect to its address",
            "add a Master with 1 replica",
        )]
    }

    /// The master decides, because it takes part in the collective until the last round.
    fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        replicas.decided_by(&[MASTER])
    }

    /// All replicas restart together, because a collective accepts no restarted member: when one rank is killed, the
    /// others wait for it without an error.
    fn restart_scope(&self, topology: &Topology<'_>, _: &Role<'_>) -> Scope {
        topology.collective_scope()
    }

    fn is_dialed(&self, _: &Topology<'_>, replica: &Replica<'_>) -> bool {
        replica.role.name() == MASTER
    }

    fn is_master(&self, _: &Topology<'_>, replica: &Replica<'_>) -> bool {
        replica.role.name() == MASTER
    }
}
