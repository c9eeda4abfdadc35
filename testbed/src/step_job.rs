//! A kind in the manner of a batch system: a controller, partitions of nodes that users name, and steps that run one after
//! the other.

use k8s_openapi::api::core::v1::EnvVar;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::{JobStatus, ReplicaSpec, RestartPolicy, RunPolicy, variable};
use training_job::{
    Cause, Framework, Outcome, Replica, ReplicaFailure, Replicas, Restart, RoleDefinition, RoleSpecs, Scope,
    Topology, TrainingJob,
};

/// A batch system for the steps of one job.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "StepJob",
    namespaced,
    status = "JobStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct StepJobSpec {
    /// The run policy.
    #[serde(default)]
    pub run_policy: RunPolicy,
    /// The process that the nodes register with.
    pub controller: ReplicaSpec,
    /// The groups of nodes.
    #[serde(default)]
    #[schemars(length(max = 8))]
    pub partitions: Vec<Partition>,
    /// The programs, in order.
    #[schemars(length(max = 8))]
    pub steps: Vec<Step>,
}

/// A group of equal nodes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Partition {
    /// The name of the group, and of its role.
    pub name: String,
    /// The replicas.
    #[serde(flatten)]
    pub spec: ReplicaSpec,
}

/// A program that uses the nodes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The name of the step, and of its role.
    pub name: String,
    /// The replicas.
    #[serde(flatten)]
    pub spec: ReplicaSpec,
}

/// The exit code with which a step asks for another turn.
pub const AGAIN: i32 = 75;

/// The exit code after which the controller and the nodes start again with the step.
pub const LOST_CONTROLLER: i32 = 76;

impl TrainingJob for StepJob {
    const FRAMEWORK: Framework = Framework::new("steps", "stepjob-controller")
        .restart_policy(&RestartPolicy::OnFailure)
        .answers_failures()
        .roles_in_fields(&[
            RoleDefinition::new("Controller")
                .in_field("controller")
                .exactly(1)
                .always_replaced(),
            RoleDefinition::new("Partition")
                .in_list("partitions", "name")
                .always_replaced()
                .starts_after(&["Controller"])
                .when_ready(),
            RoleDefinition::new("Step")
                .in_list("steps", "name")
                .ports(&[])
                .without_services()
                .starts_after(&["Controller"])
                .when_ready()
                .in_order(),
        ]);

    fn replica_specs(&self) -> RoleSpecs<'_> {
        let partitions = self.spec.partitions.iter();
        let steps = self.spec.steps.iter();
        RoleSpecs::default()
            .one("Controller", Some(&self.spec.controller))
            .named("Partition", partitions.map(|of| (&*of.name, Some(&of.spec))))
            .named("Step", steps.map(|of| (&*of.name, Some(&of.spec))))
    }

    fn run_policy(&self) -> RunPolicy {
        self.spec.run_policy.clone()
    }

    fn status(&self) -> Option<&JobStatus> {
        self.status.as_ref()
    }

    fn env(&self, topology: &Topology<'_>, _: &Replica<'_>) -> Vec<EnvVar> {
        let controller = topology.role("Controller").map(|role| role.host(0));
        vec![variable("CONTROLLER", controller.unwrap_or_default())]
    }

    fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        replicas.decided_by(&["Step"])
    }

    fn on_failure(&self, _: &Topology<'_>, failure: &ReplicaFailure<'_>) -> Option<Restart> {
        match failure.cause {
            Cause::Exited(AGAIN) => {
                let pause = std::time::Duration::from_secs(30);
                Some(Restart::of(Scope::Replica).uncounted(2).after(pause))
            }
            Cause::Exited(LOST_CONTROLLER) => Some(Restart::of(Scope::Roles(&["Controller", "Partition"]))),
            _ => None,
        }
    }
}
