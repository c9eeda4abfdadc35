//! The kind PaddleJob as the library sees it.

use k8s_openapi::api::core::v1::EnvVar;
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::{JobStatus, ReplicaSpecs, RestartPolicy, RunPolicy};
use training_job::{
    Check, FieldErrors, Framework, Milestone, Outcome, Replica, Replicas, Role, RoleDefinition, RoleSpecs,
    Scope, Topology, TrainingJob,
};

use crate::ElasticPolicy;
use crate::environment::{self, MASTER, WORKER};

/// A distributed job of PaddlePaddle.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kubeflow.org",
    version = "v1",
    kind = "PaddleJob",
    plural = "paddlejobs",
    singular = "paddlejob",
    namespaced,
    doc = "A distributed job of PaddlePaddle.",
    status = "JobStatus",
    derive = "PartialEq",
    printcolumn(name = "State", type_ = "string", json_path = ".status.conditions[-1:].type"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct PaddleJobSpec {
    /// The replicas by role: Worker, and Master for parameter servers. A job without a Master trains in a collective.
    #[serde(default)]
    pub paddle_replica_specs: ReplicaSpecs,

    /// The policies of the job, such as restarts, deadline, clean-up, gang scheduling and suspension. Default: all
    /// unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_policy: Option<RunPolicy>,

    /// The controller that runs the job; the same as `runPolicy.managedBy`. Default: this operator. It cannot be
    /// changed after the job's creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "training_job::api::schema::managed_by")]
    pub managed_by: Option<String>,

    /// Bounds for the number of workers. It has no effect, as under the Go operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elastic_policy: Option<ElasticPolicy>,
}

impl TrainingJob for PaddleJob {
    const FRAMEWORK: Framework = Framework::new("paddle", "paddlejob-controller")
        .aliases(&["paddlepaddle"])
        .port("master", 36543)
        .restart_policy(&RestartPolicy::OnFailure)
        .scales(WORKER)
        .roles(
            "paddleReplicaSpecs",
            &[RoleDefinition::new(MASTER), RoleDefinition::new(WORKER)],
        );

    fn replica_specs(&self) -> RoleSpecs<'_> {
        RoleSpecs::map(&self.spec.paddle_replica_specs)
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
            &[MASTER, WORKER],
            "must have a Master or a Worker",
            "add a Worker",
        )]
    }

    fn warn(&self, topology: &Topology<'_>, warnings: &mut FieldErrors) {
        if let (Some(servers), None) = (topology.role(MASTER), topology.role(WORKER)) {
            let problem = "parameter servers without workers wait forever";
            warnings.push(
                &*servers.field,
                problem,
                "add a Worker, or rename this role to Worker",
            );
        }
        if self.spec.elastic_policy.is_some() {
            warnings.push(
                "spec.elasticPolicy",
                "has no effect, because no program reads it",
                "remove it",
            );
        }
    }

    /// Without masters all workers decide. Masters are parameter servers. A worker stops them when the training is
    /// done, so their end is the end of the job, as under the Go operator. The job also ends when all workers have
    /// ended, because masters run forever if the program does not stop them.
    fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        let workers = replicas.decided_by(&[WORKER]);
        match replicas.role(MASTER) {
            Some(_) if workers != Outcome::Succeeded => replicas.decided_by(&[MASTER]),
            _ => workers,
        }
    }

    /// All replicas restart together. In a collective all launchers end when one process ends. A restarted parameter
    /// server has lost its part of the model, and launchers accept no new member after the rendezvous.
    fn restart_scope(&self, topology: &Topology<'_>, _: &Role<'_>) -> Scope {
        topology.collective_scope()
    }

    /// Returns true for the replica at the rendezvous address: the first master, or without masters the first worker.
    fn is_dialed(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> bool {
        let rendezvous = topology.role(MASTER).unwrap_or(replica.role);
        replica.role.name() == rendezvous.name() && replica.index == 0
    }

    /// Returns true for every master. A job without masters has none.
    fn is_master(&self, _: &Topology<'_>, replica: &Replica<'_>) -> bool {
        replica.role.name() == MASTER
    }

    /// Returns the Go operator's message, which contains the namespace if there is no master.
    /// Masters are parameter servers.
    fn prints_progress(&self, _: &Topology<'_>, replica: &Replica<'_>) -> bool {
        replica.role.name() == WORKER && replica.index == 0
    }

    fn message(&self, milestone: &Milestone<'_>) -> String {
        let (namespace, name) = (self.namespace().unwrap_or_default(), self.name_any());
        let mut roles = self.spec.paddle_replica_specs.keys();
        let has_master = roles.any(|role| role.eq_ignore_ascii_case(MASTER));
        match has_master {
            true => milestone.describe("PaddleJob", &name),
            false => milestone.describe_with_namespace("PaddleJob", &namespace, &name),
        }
    }
}
