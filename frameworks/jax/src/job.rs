//! The kind JAXJob as the library sees it.

use k8s_openapi::api::core::v1::EnvVar;
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::{JobStatus, ReplicaSpecs, RunPolicy};
use training_job::{
    Check, Framework, Milestone, Replica, Role, RoleDefinition, RoleSpecs, Scope, Topology, TrainingJob,
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
    /// The replicas by role. The only role is Worker; worker 0 is the coordinator.
    #[serde(default)]
    pub jax_replica_specs: ReplicaSpecs,

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

    fn checks() -> Vec<Check<Self>> {
        vec![Check::any_of(
            &[WORKER],
            "must have a Worker, because only workers train",
            "add one",
        )]
    }

    /// All processes restart together, because a restarted process has a new incarnation number: the other processes
    /// abort when they see it, and it waits for them forever.
    fn restart_scope(&self, topology: &Topology<'_>, _: &Role<'_>) -> Scope {
        topology.collective_scope()
    }

    /// Returns true for worker 0, the coordinator.
    fn is_dialed(&self, _: &Topology<'_>, replica: &Replica<'_>) -> bool {
        replica.index == 0
    }

    fn is_master(&self, _: &Topology<'_>, replica: &Replica<'_>) -> bool {
        replica.index == 0
    }

    /// Returns the Go operator's message for a job without a master.
    fn message(&self, milestone: &Milestone<'_>) -> String {
        let (namespace, name) = (self.namespace().unwrap_or_default(), self.name_any());
        milestone.describe_with_namespace("JAXJob", &namespace, &name)
    }
}
