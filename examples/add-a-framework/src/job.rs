//! FarmJob: a head hands out tasks, and workers do them.

// region: names
use k8s_openapi::api::core::v1::EnvVar;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::{JobStatus, ReplicaSpecs, RestartPolicy, RunPolicy, variable};
use training_job::{
    Check, FailureTolerance, Framework, Outcome, Replica, Replicas, Role, RoleDefinition, RoleSpecs, Scope,
    Topology, TrainingJob,
};
use training_job_cli::{Environment, LocalPod};

const HEAD: &str = "Head";
const WORKER: &str = "Worker";
// endregion: names

// region: resource
/// A job with a head, which hands out tasks, and workers, which do them.
#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "FarmJob",
    namespaced,
    status = "JobStatus",
    printcolumn(name = "State", type_ = "string", json_path = ".status.conditions[-1:].type")
)]
#[serde(rename_all = "camelCase")]
pub struct FarmJobSpec {
    /// The replicas by role: one Head, and Workers.
    #[serde(default)]
    pub replica_specs: ReplicaSpecs,

    /// The policies of the job, such as restarts, deadline and clean-up. Default: all unset.
    #[serde(default)]
    pub run_policy: RunPolicy,
}
// endregion: resource

// region: framework
impl TrainingJob for FarmJob {
    const FRAMEWORK: Framework = Framework::new("farm", "farmjob-controller")
        .port("farm-port", 7000)
        .restart_policy(&RestartPolicy::ExitCode)
        .roles(
            "replicaSpecs",
            &[RoleDefinition::new(HEAD).at_most(1), RoleDefinition::new(WORKER)],
        );

    fn replica_specs(&self) -> RoleSpecs<'_> {
        RoleSpecs::map(&self.spec.replica_specs)
    }

    fn run_policy(&self) -> RunPolicy {
        self.spec.run_policy.clone()
    }

    fn status(&self) -> Option<&JobStatus> {
        self.status.as_ref()
    }

    /// Returns the head's address and the role of the replica.
    fn env(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
        let Some(head) = topology.role(HEAD) else {
            return Vec::new();
        };
        vec![
            variable("FARM_HEAD", head.host(0)),
            variable("FARM_PORT", head.port.to_string()),
            variable("FARM_ROLE", &replica.role.slug),
        ]
    }
    // endregion: framework

    // region: outcome
    /// The head decides, because it ends when all tasks are done.
    fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        replicas.decided_by(&[HEAD])
    }
    // endregion: outcome

    // region: restarts
    /// A lost worker restarts alone, because the head gives its task to another worker. A lost head restarts the job,
    /// because only the head stores the results.
    fn restart_scope(&self, _: &Topology<'_>, role: &Role<'_>) -> Scope {
        match role.name() {
            HEAD => Scope::Job,
            _ => Scope::Replica,
        }
    }

    /// Lost workers are tolerated while another worker remains.
    fn tolerance(&self, role: &Role<'_>) -> FailureTolerance {
        match role.name() {
            WORKER => FailureTolerance::WhileOthersRemain,
            _ => FailureTolerance::None,
        }
    }
    // endregion: restarts

    // region: validation
    /// The operator and the API server both make these checks.
    fn checks() -> Vec<Check<Self>> {
        let (problem, remedy) = (
            "must have a Head, because only a Head hands out tasks",
            "add a Head with 1 replica",
        );
        vec![Check::any_of(&[HEAD], problem, remedy)]
    }
    // endregion: validation
}

// region: local
/// Makes each pod listen at its own address, because the pods on one machine use the same port.
pub fn adjust_local(pod: &LocalPod, environment: &mut Environment) {
    environment.set(
        "FARM_BIND",
        pod.address.to_string(),
        "pods of one machine share a network",
    );
}
// endregion: local
