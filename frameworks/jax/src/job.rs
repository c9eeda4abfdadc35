//! What makes a JAXJob a JAXJob.

use k8s_openapi::api::core::v1::EnvVar;
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::{JobStatus, ReplicaSpecs, RestartScope, RunPolicy};
use training_job::{
    Framework, Milestone, Replica, Requirement, Role, RoleDefinition, RoleSpecs, Topology, TrainingJob,
};

use crate::environment::{self, WORKER};

/// A distributed job of JAX.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kubeflow.org",
    version = "v1",
    kind = "JAXJob",
    plural = "jaxjobs",
    singular = "jaxjob",
    namespaced,
    doc = "A distributed job of JAX.",
    status = "JobStatus",
    derive = "PartialEq",
    printcolumn(name = "State", type_ = "string", json_path = ".status.conditions[-1:].type"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct JAXJobSpec {
    /// The replicas by role: Worker.
    #[serde(default)]
    pub jax_replica_specs: ReplicaSpecs,

    /// How the job runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_policy: Option<RunPolicy>,

    /// Which controller runs the job, as `runPolicy.managedBy`. It cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "training_job::api::schema::managed_by")]
    pub managed_by: Option<String>,
}

impl TrainingJob for JAXJob {
    const FRAMEWORK: Framework = Framework::new("jax", "jaxjob-controller")
        .port("jaxjob-port", 6666)
        .scales(WORKER)
        .roles("jaxReplicaSpecs", &[RoleDefinition::new(WORKER)]);

    fn replica_specs(&self) -> RoleSpecs<'_> {
        RoleSpecs::map(&self.spec.jax_replica_specs)
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

    fn requirements() -> Vec<Requirement<Self>> {
        vec![Requirement::any_of(
            &[WORKER],
            "must have a Worker, because only workers train",
            "add one",
        )]
    }

    /// A process that comes back is another incarnation, which the others do not know: they abort, and it waits for
    /// them for ever.
    fn restart_scope(&self, topology: &Topology<'_>, _: &Role<'_>) -> RestartScope {
        topology.collective_scope()
    }

    /// Worker 0, which coordinates the others.
    fn is_dialed(&self, _: &Topology<'_>, replica: &Replica<'_>) -> bool {
        replica.index == 0
    }

    fn is_master(&self, _: &Topology<'_>, replica: &Replica<'_>) -> bool {
        replica.index == 0
    }

    /// The Go operator's words for a job without a master.
    fn message(&self, milestone: &Milestone<'_>) -> String {
        let (namespace, name) = (self.namespace().unwrap_or_default(), self.name_any());
        milestone.describe_with_namespace("JAXJob", &namespace, &name)
    }
}
