//! What makes an XGBoostJob an XGBoostJob.

use k8s_openapi::api::core::v1::EnvVar;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::{JobStatus, ReplicaSpecs, RestartPolicy, RestartScope, RunPolicy};
use training_job::{
    FieldErrors, Framework, Outcome, Replica, Replicas, Role, RoleKind, Topology, TrainingJob,
};
use training_job::{Rule, any_replica};

use crate::environment;

pub(crate) const MASTER: &str = "Master";
pub(crate) const WORKER: &str = "Worker";

const NO_MASTER: [&str; 2] = [
    "an XGBoostJob needs its Master: it is rank 0, and the workers meet at its address",
    "add a Master with 1 replica",
];

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
    /// The replicas by role: Master and Worker.
    #[serde(default)]
    pub xgb_replica_specs: ReplicaSpecs,

    /// How the job runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_policy: Option<RunPolicy>,
}

impl TrainingJob for XGBoostJob {
    const FRAMEWORK: Framework = Framework {
        name: "xgboost",
        controller: "xgboostjob-controller",
        container: "xgboost",
        port_name: "xgboostjob-port",
        port: 9999,
        restart_policy: RestartPolicy::Never,
        specs_field: "xgbReplicaSpecs",
        roles: &[RoleKind::single(MASTER), RoleKind::new(WORKER)],
    };

    fn replica_specs(&self) -> &ReplicaSpecs {
        &self.spec.xgb_replica_specs
    }

    fn run_policy(&self) -> RunPolicy {
        self.spec.run_policy.clone().unwrap_or_default()
    }

    fn status(&self) -> Option<&JobStatus> {
        self.status.as_ref()
    }

    fn env(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
        environment::of(topology, replica)
    }

    fn validate(&self, topology: &Topology<'_>, errors: &mut FieldErrors) {
        if topology.replicas(MASTER) == 0 {
            errors.push("spec.xgbReplicaSpecs", NO_MASTER[0], NO_MASTER[1]);
        }
    }

    fn rules() -> Vec<Rule> {
        let has_master = any_replica(&Self::FRAMEWORK, &[MASTER]);
        vec![Rule::new(has_master, NO_MASTER.join("; ")).at("xgbReplicaSpecs")]
    }

    /// The master's end is the end of the job: it takes part in the collective to the last round.
    fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        replicas.decided_by(&[MASTER])
    }

    /// A collective takes nobody back: when one rank is killed, the others wait for it without a word.
    fn restart_scope(&self, topology: &Topology<'_>, _: &Role<'_>) -> RestartScope {
        if topology.total() > 1 {
            RestartScope::Job
        } else {
            RestartScope::Replica
        }
    }

    fn is_master(&self, _: &Topology<'_>, replica: &Replica<'_>) -> bool {
        replica.role.name() == MASTER
    }
}
