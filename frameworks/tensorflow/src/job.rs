//! The kind TFJob as the library sees it.

use k8s_openapi::api::core::v1::EnvVar;
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::{JobStatus, ReplicaSpecs, RunPolicy, SuccessPolicy};
use training_job::roles_named;
use training_job::{
    Check, FailureTolerance, FieldErrors, Framework, Milestone, Outcome, Replica, ReplicaState, Replicas,
    Role, RoleDefinition, RoleSpecs, Scope, Topology, TrainingJob,
};

use crate::environment::{self, PS, WORKER};

/// The two names of one role. A job has at most one of them.
const CHIEFS: [&str; 2] = ["Chief", "Master"];
const EVALUATOR: &str = "Evaluator";
/// A job must have one of these roles.
const DECIDING: [&str; 3] = [CHIEFS[0], CHIEFS[1], WORKER];

/// A distributed job of TensorFlow.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kubeflow.org",
    version = "v1",
    kind = "TFJob",
    plural = "tfjobs",
    singular = "tfjob",
    namespaced,
    doc = "A distributed job of TensorFlow.",
    status = "JobStatus",
    derive = "PartialEq",
    printcolumn(name = "State", type_ = "string", json_path = ".status.conditions[-1:].type"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct TFJobSpec {
    /// The replicas by role: PS, Worker, Evaluator, and Chief or Master, which are names of one role.
    #[serde(default)]
    pub tf_replica_specs: ReplicaSpecs,

    /// The policies of the job, such as restarts, deadline, clean-up, gang scheduling and suspension. Default: all
    /// unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_policy: Option<RunPolicy>,

    /// The controller that runs the job; the same as `runPolicy.managedBy`. Default: this operator. It cannot be
    /// changed after the job's creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "training_job::api::schema::managed_by")]
    pub managed_by: Option<String>,

    /// The workers that must succeed if there is no chief: all with `AllWorkers`. Default: worker 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_policy: Option<SuccessPolicy>,

    /// True if the number of workers may change. The environment of each worker then contains only the worker itself
    /// and the parameter servers, and the job continues without workers that fail. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_dynamic_worker: Option<bool>,
}

impl TFJob {
    fn has_dynamic_workers(&self) -> bool {
        self.spec.enable_dynamic_worker == Some(true)
    }
}

impl TrainingJob for TFJob {
    const FRAMEWORK: Framework = Framework::new("tensorflow", "tfjob-controller")
        .port("tfjob-port", 2222)
        .env_main_container_only()
        .roles(
            "tfReplicaSpecs",
            &[
                RoleDefinition::new(PS),
                RoleDefinition::new(WORKER),
                RoleDefinition::new(CHIEFS[0]).at_most(1),
                RoleDefinition::new(CHIEFS[1]).at_most(1),
                RoleDefinition::new(EVALUATOR),
            ],
        );

    fn replica_specs(&self) -> RoleSpecs<'_> {
        RoleSpecs::map(&self.spec.tf_replica_specs)
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
        environment::variables(topology, replica, self.has_dynamic_workers())
    }

    fn validate(&self, _: &Topology<'_>, errors: &mut FieldErrors) {
        errors.check_word("spec.successPolicy", self.spec.success_policy.as_ref());
    }

    fn checks() -> Vec<Check<Self>> {
        let one_chief = format!("{} < 2", roles_named(&Self::FRAMEWORK, &CHIEFS));
        vec![
            Check::field(
                Self::FRAMEWORK.roles_field,
                "must not have both Chief and Master, which are names of one role",
                "remove one of them",
                one_chief,
                |_, topology| {
                    let chiefs = topology.roles.iter().filter(|role| CHIEFS.contains(&role.name()));
                    chiefs.count() < 2
                },
            ),
            Check::any_of(
                &DECIDING,
                "must have a Chief, Master or Worker, because a TFJob without them never ends",
                "add a Worker",
            ),
        ]
    }

    /// The chief decides if there is one. Otherwise worker 0 decides, because it does the chief's work, or with
    /// `successPolicy: AllWorkers` all workers that have not failed for good.
    fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        if CHIEFS.iter().any(|chief| replicas.role(chief).is_some()) {
            return replicas.decided_by(&CHIEFS);
        }
        let Some(workers) = replicas.role(WORKER) else {
            return Outcome::Waiting;
        };
        let succeeded = workers.count(ReplicaState::Succeeded);
        let first = workers.states.first() == Some(&ReplicaState::Succeeded);
        let needs_all = self.spec.success_policy == Some(SuccessPolicy::AllWorkers);
        let all = succeeded > 0 && succeeded + workers.count(ReplicaState::Failed) == workers.states.len();
        match all || first && !needs_all {
            true => Outcome::Succeeded,
            false => replicas.decided_by(&[WORKER]),
        }
    }

    /// With parameter servers a restarted replica rejoins the job. Without them the workers train in a collective and
    /// restart together, because the others exit with 1 when one is killed, and policy `ExitCode` treats 1 as final. An
    /// evaluator is not part of the collective.
    fn restart_scope(&self, topology: &Topology<'_>, role: &Role<'_>) -> Scope {
        let members = topology.total() - topology.replicas(EVALUATOR);
        let alone = role.name() == EVALUATOR || members < 2;
        match alone || topology.role(PS).is_some() || self.has_dynamic_workers() {
            true => Scope::Replica,
            false => Scope::Job,
        }
    }

    /// A dynamic worker knows only itself and the parameter servers.
    fn is_elastic(&self, _: &Topology<'_>, role: &Role<'_>) -> bool {
        self.has_dynamic_workers() && role.name() == WORKER
    }

    /// Tolerates failures of dynamic workers while another worker remains.
    fn tolerance(&self, role: &Role<'_>) -> FailureTolerance {
        match self.has_dynamic_workers() && role.name() == WORKER {
            true => FailureTolerance::WhileOthersRemain,
            false => FailureTolerance::None,
        }
    }

    /// Returns true for the chief, or for worker 0 if there is no chief.
    fn is_dialed(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> bool {
        self.is_master(topology, replica)
    }

    fn is_master(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> bool {
        if CHIEFS.iter().any(|chief| topology.role(chief).is_some()) {
            CHIEFS.contains(&replica.role.name())
        } else {
            replica.role.name() == WORKER && replica.index == 0
        }
    }

    /// Returns the Go operator's message for a TFJob, which differs from that of the other kinds.
    fn message(&self, milestone: &Milestone<'_>) -> String {
        let (namespace, name) = (self.namespace().unwrap_or_default(), self.name_any());
        match milestone {
            Milestone::Failed { role, count } => {
                format!("TFJob {namespace}/{name} has failed because {count} {role} replica(s) failed.")
            }
            other => other.describe_with_namespace("TFJob", &namespace, &name),
        }
    }
}
