//! What makes a PaddleJob a PaddleJob.

use k8s_openapi::api::core::v1::EnvVar;
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::{JobStatus, ReplicaSpecs, RestartPolicy, RestartScope, RunPolicy};
use training_job::{
    FieldErrors, Framework, Milestone, Outcome, Replica, Replicas, Requirement, Role, RoleDefinition,
    RoleSpecs, Topology, TrainingJob,
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
    /// The replicas by role: Worker, and Master for parameter servers.
    #[serde(default)]
    pub paddle_replica_specs: ReplicaSpecs,

    /// How the job runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_policy: Option<RunPolicy>,

    /// Which controller runs the job, as `runPolicy.managedBy`. It cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "training_job::api::schema::managed_by")]
    pub managed_by: Option<String>,

    /// Without effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elastic_policy: Option<ElasticPolicy>,
}

impl TrainingJob for PaddleJob {
    const FRAMEWORK: Framework = Framework::new("paddle", "paddlejob-controller")
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

    fn requirements() -> Vec<Requirement<Self>> {
        vec![Requirement::any_of(
            &[MASTER, WORKER],
            "must have a Master or a Worker",
            "add a Worker",
        )]
    }

    fn warn(&self, topology: &Topology<'_>, warnings: &mut FieldErrors) {
        if let (Some(servers), None) = (topology.role(MASTER), topology.role(WORKER)) {
            let problem = "parameter servers without workers wait forever";
            warnings.push(&*servers.field, problem, "add a Worker, or rename this role to Worker");
        }
        if self.spec.elastic_policy.is_some() {
            warnings.push(
                "spec.elasticPolicy",
                "has no effect, because no program reads it",
                "remove it",
            );
        }
    }

    /// Without masters all workers decide. Masters are parameter servers, which a worker stops when the training is
    /// done, so their end is the end of the job, as under the Go operator. A program that forgets to stop them would
    /// run for ever; so the end of all workers is the end of the job as well.
    fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        let workers = replicas.decided_by(&[WORKER]);
        match replicas.role(MASTER) {
            Some(_) if workers != Outcome::Succeeded => replicas.decided_by(&[MASTER]),
            _ => workers,
        }
    }

    /// In a collective all launchers end when one process does. With parameter servers, one that comes back has lost its
    /// part of the model, and the launchers, who have met once, let nobody in later.
    fn restart_scope(&self, topology: &Topology<'_>, _: &Role<'_>) -> RestartScope {
        topology.collective_scope()
    }

    /// Every master; without one, no pod is.
    fn is_dialed(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> bool {
        let meeting = topology.role(MASTER).unwrap_or(replica.role);
        replica.role.name() == meeting.name() && replica.index == 0
    }

    fn is_master(&self, _: &Topology<'_>, replica: &Replica<'_>) -> bool {
        replica.role.name() == MASTER
    }

    /// The Go operator's words, which are others without a master.
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
