//! What makes a TFJob a TFJob.

use k8s_openapi::api::core::v1::EnvVar;
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::admission::{Rule, any_replica, roles_named};
use training_job::api::{JobStatus, ReplicaSpecs, RestartPolicy, RestartScope, RunPolicy, SuccessPolicy};
#[cfg(feature = "local")]
use training_job::local::{Environment, LocalPod};
use training_job::{
    FieldErrors, Framework, Milestone, Outcome, Replica, ReplicaState, Replicas, Role, RoleKind, Topology,
    TrainingJob,
};

use crate::environment;

pub(crate) const PS: &str = "PS";
pub(crate) const WORKER: &str = "Worker";
/// Both names mean the same; a job has one of them at most.
const CHIEFS: [&str; 2] = ["Chief", "Master"];
const EVALUATOR: &str = "Evaluator";

const TWO_CHIEFS: (&str, &str) = (
    "Chief and Master are two names of one role",
    "leave one of them out",
);
const ENDLESS: (&str, &str) = (
    "a TFJob without a Chief, Master or Worker would never end",
    "add a Worker",
);

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

    fn needs_all_workers(&self) -> bool {
        self.spec.success_policy == Some(SuccessPolicy::AllWorkers)
    }
}

impl TrainingJob for TFJob {
    const FRAMEWORK: Framework = Framework {
        name: "tensorflow",
        controller: "tfjob-controller",
        container: "tensorflow",
        port_name: "tfjob-port",
        port: 2222,
        restart_policy: RestartPolicy::Never,
        specs_field: "tfReplicaSpecs",
        roles: &[
            RoleKind::new(PS),
            RoleKind::new(WORKER),
            RoleKind::single(CHIEFS[0]),
            RoleKind::single(CHIEFS[1]),
            RoleKind::new(EVALUATOR),
        ],
    };

    fn replica_specs(&self) -> &ReplicaSpecs {
        &self.spec.tf_replica_specs
    }

    fn run_policy(&self) -> RunPolicy {
        self.spec.run_policy.clone().unwrap_or_default()
    }

    fn status(&self) -> Option<&JobStatus> {
        self.status.as_ref()
    }

    fn env(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
        environment::of(topology, replica, self.has_dynamic_workers())
    }

    /// A second process with `TF_CONFIG` would take the first one's place in the cluster.
    fn gets_env(&self, container: &str) -> bool {
        container == Self::FRAMEWORK.container
    }

    fn validate(&self, topology: &Topology<'_>, errors: &mut FieldErrors) {
        if let Some(SuccessPolicy::Other(word)) = &self.spec.success_policy
            && !word.is_empty()
        {
            errors.unknown_word("spec.successPolicy", word, SuccessPolicy::WORDS);
        }
        let is_chief = |role: &&Role<'_>| CHIEFS.contains(&role.name());
        if topology.roles.iter().filter(is_chief).count() > 1 {
            let (problem, remedy) = TWO_CHIEFS;
            errors.push("spec.tfReplicaSpecs", problem, remedy);
        }
        if [CHIEFS[0], CHIEFS[1], WORKER]
            .iter()
            .all(|role| topology.replicas(role) == 0)
        {
            let (problem, remedy) = ENDLESS;
            errors.push("spec.tfReplicaSpecs", problem, remedy);
        }
    }

    fn rules() -> Vec<Rule> {
        let framework = Self::FRAMEWORK;
        let one_chief = format!("{} < 2", roles_named(&framework, &CHIEFS));
        let decided = any_replica(&framework, &[CHIEFS[0], CHIEFS[1], WORKER]);
        [(one_chief, TWO_CHIEFS), (decided, ENDLESS)]
            .map(|(expression, (problem, remedy))| {
                Rule::new(expression, format!("{problem}; {remedy}")).at("tfReplicaSpecs")
            })
            .into()
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
        let all = succeeded > 0 && succeeded + workers.count(ReplicaState::Failed) == workers.states.len();
        if all || first && !self.needs_all_workers() {
            Outcome::Succeeded
        } else {
            replicas.decided_by(&[WORKER])
        }
    }

    /// With parameter servers each replica finds its place again. Without, workers train in a collective:
    /// when one is killed the others end with exit code 1, which policy `ExitCode` takes as final, so all
    /// restart before they do. An evaluator takes part in neither.
    fn restart_scope(&self, topology: &Topology<'_>, role: &Role<'_>) -> RestartScope {
        let members = topology.total() - topology.replicas(EVALUATOR);
        if topology.role(PS).is_some()
            || members < 2
            || role.name() == EVALUATOR
            || self.has_dynamic_workers()
        {
            RestartScope::Replica
        } else {
            RestartScope::Job
        }
    }

    /// Dynamic workers may go.
    fn is_expendable(&self, role: &Role<'_>) -> bool {
        self.has_dynamic_workers() && role.name() == WORKER
    }

    /// The chief, or without one worker 0.
    fn is_master(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> bool {
        if CHIEFS.iter().any(|chief| topology.role(chief).is_some()) {
            CHIEFS.contains(&replica.role.name())
        } else {
            replica.role.name() == WORKER && replica.index == 0
        }
    }

    /// TensorFlow listens at all addresses of the machine.
    #[cfg(feature = "local")]
    fn adjust_local(_: &LocalPod, environment: &mut Environment) {
        let local = environment
            .get("TF_CONFIG")
            .and_then(environment::with_local_ports);
        if let Some(local) = local {
            environment.set("TF_CONFIG", local, "so that each replica has a port of its own");
        }
    }

    /// The Go operator's words for a TFJob, which differ from those for all others.
    fn message(&self, milestone: &Milestone<'_>) -> String {
        let (namespace, name) = (self.namespace().unwrap_or_default(), self.name_any());
        match milestone {
            Milestone::Running => format!("TFJob {namespace}/{name} is running."),
            Milestone::Succeeded => format!("TFJob {namespace}/{name} successfully completed."),
            Milestone::Failed { role, count } => {
                format!("TFJob {namespace}/{name} has failed because {count} {role} replica(s) failed.")
            }
            other => other.describe("TFJob", &name),
        }
    }
}
