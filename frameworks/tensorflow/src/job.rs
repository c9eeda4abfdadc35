//! What makes a TFJob a TFJob.

use k8s_openapi::api::core::v1::EnvVar;
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::{JobStatus, ReplicaSpecs, RestartScope, RunPolicy, SuccessPolicy};
use training_job::{
    FailureTolerance, FieldErrors, Framework, Milestone, Outcome, Replica, ReplicaState, Replicas,
    Requirement, Role, RoleDefinition, RoleSpecs, Topology, TrainingJob,
};
use training_job::{Rule, roles_named};

use crate::environment::{self, PS, WORKER};

/// Both names mean the same; a job has one of them at most.
const CHIEFS: [&str; 2] = ["Chief", "Master"];
const EVALUATOR: &str = "Evaluator";
/// A job needs one of these.
const DECIDING: [&str; 3] = [CHIEFS[0], CHIEFS[1], WORKER];

const TWO_CHIEFS: [&str; 2] = [
    "must not have both Chief and Master, which are names of one role",
    "remove one of them",
];

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
    /// The replicas by role: PS, Worker, Chief or Master, Evaluator.
    #[serde(default)]
    pub tf_replica_specs: ReplicaSpecs,

    /// How the job runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_policy: Option<RunPolicy>,

    /// Which controller runs the job, as `runPolicy.managedBy`. It cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "training_job::api::schema::managed_by")]
    pub managed_by: Option<String>,

    /// Which workers must succeed where there is no chief: worker 0, or with `AllWorkers` all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_policy: Option<SuccessPolicy>,

    /// Whether workers may come and go: each is told of itself and the parameter servers only, and the
    /// job goes on without workers that fail.
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

    fn validate(&self, topology: &Topology<'_>, errors: &mut FieldErrors) {
        errors.check_word("spec.successPolicy", self.spec.success_policy.as_ref());
        let is_chief = |role: &&Role<'_>| CHIEFS.contains(&role.name());
        if topology.roles.iter().filter(is_chief).count() > 1 {
            errors.push(Self::FRAMEWORK.roles_path(), TWO_CHIEFS[0], TWO_CHIEFS[1]);
        }
    }

    fn rules() -> Vec<Rule> {
        let one_chief = format!("{} < 2", roles_named(&Self::FRAMEWORK, &CHIEFS));
        vec![Rule::new(one_chief, TWO_CHIEFS.join("; ")).at(Self::FRAMEWORK.roles_field)]
    }

    fn requirements() -> Vec<Requirement<Self>> {
        vec![Requirement::any_of(
            &DECIDING,
            "must have a Chief, Master or Worker, because a TFJob without them never ends",
            "add a Worker",
        )]
    }

    /// The chief decides, if there is one. Without it worker 0 does, whose work is the chief's, or by
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

    /// With parameter servers each replica finds its place again. Without, workers train in a collective:
    /// when one is killed the others end with exit code 1, which policy `ExitCode` takes as final, so all
    /// restart before they do. An evaluator takes part in neither.
    fn restart_scope(&self, topology: &Topology<'_>, role: &Role<'_>) -> RestartScope {
        let members = topology.total() - topology.replicas(EVALUATOR);
        let alone = role.name() == EVALUATOR || members < 2;
        match alone || topology.role(PS).is_some() || self.has_dynamic_workers() {
            true => RestartScope::Replica,
            false => RestartScope::Job,
        }
    }

    /// Dynamic workers may go.
    fn tolerance(&self, role: &Role<'_>) -> FailureTolerance {
        match self.has_dynamic_workers() && role.name() == WORKER {
            true => FailureTolerance::WhileOthersRemain,
            false => FailureTolerance::None,
        }
    }

    /// The chief, or without one worker 0.
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

    /// The Go operator's words for a TFJob, which differ from those for all others.
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
