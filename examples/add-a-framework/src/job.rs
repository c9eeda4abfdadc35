//! A farm: a head hands out tasks, and workers do them.

// region: names
use k8s_openapi::api::core::v1::EnvVar;
use kube::CustomResource;
use local_node::{Environment, LocalPod};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::{JobStatus, ReplicaSpecs, RestartPolicy, RestartScope, RunPolicy, variable};
use training_job::{
    FieldErrors, Framework, Outcome, Replica, Replicas, Role, RoleKind, Topology, TrainingJob,
};
use training_job::{Rule, any_replica};

const HEAD: &str = "Head";
const WORKER: &str = "Worker";
// endregion: names

// region: resource
/// A head that hands out tasks, and workers that do them.
#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "FarmJob",
    namespaced,
    status = "JobStatus",
    printcolumn(name = "State", type_ = "string", json_path = ".status.conditions[-1:].type"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct FarmJobSpec {
    /// The replicas by role: Head and Worker.
    #[serde(default)]
    pub replica_specs: ReplicaSpecs,

    /// How the job runs.
    #[serde(default)]
    pub run_policy: RunPolicy,
}
// endregion: resource

// region: framework
impl TrainingJob for FarmJob {
    const FRAMEWORK: Framework = Framework {
        name: "farm",
        controller: "farmjob-controller",
        container: "farm",
        port_name: "farm-port",
        port: 7000,
        restart_policy: RestartPolicy::ExitCode,
        specs_field: "replicaSpecs",
        roles: &[RoleKind::single(HEAD), RoleKind::new(WORKER)],
    };

    fn replica_specs(&self) -> &ReplicaSpecs {
        &self.spec.replica_specs
    }

    fn run_policy(&self) -> RunPolicy {
        self.spec.run_policy.clone()
    }

    fn status(&self) -> Option<&JobStatus> {
        self.status.as_ref()
    }

    /// Where the head is, and who the replica is.
    fn env(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
        let Some(head) = topology.role(HEAD) else {
            return Vec::new();
        };
        vec![
            variable("FARM_HEAD", topology.host(head, 0)),
            variable("FARM_PORT", head.port.to_string()),
            variable("FARM_ROLE", &replica.role.lower),
        ]
    }
    // endregion: framework

    // region: outcome
    /// The head knows when all tasks are done.
    fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        replicas.decided_by(&[HEAD])
    }
    // endregion: outcome

    // region: restarts
    /// The head gives a lost worker's task to another; but it alone knows what is done.
    fn restart_scope(&self, _: &Topology<'_>, role: &Role<'_>) -> RestartScope {
        match role.name() {
            HEAD => RestartScope::Job,
            _ => RestartScope::Replica,
        }
    }

    /// Fewer workers take longer; the last one is needed.
    fn is_expendable(&self, role: &Role<'_>) -> bool {
        role.name() == WORKER
    }
    // endregion: restarts

    // region: validation
    fn validate(&self, topology: &Topology<'_>, errors: &mut FieldErrors) {
        if topology.replicas(HEAD) == 0 {
            errors.push("spec.replicaSpecs", NO_HEAD.0, NO_HEAD.1);
        }
    }

    /// The same for the API server, which refuses such a job at once.
    fn rules() -> Vec<Rule> {
        let has_head = any_replica(&Self::FRAMEWORK, &[HEAD]);
        vec![Rule::new(has_head, format!("{}; {}", NO_HEAD.0, NO_HEAD.1)).at("replicaSpecs")]
    }
    // endregion: validation
}

// region: no-head
/// What is wrong, and what to do.
const NO_HEAD: (&str, &str) = ("nobody hands out tasks", "add a Head with 1 replica");
// endregion: no-head

// region: local
/// On one machine many pods share a port: each listens at its own address.
pub(crate) fn adjust_local(pod: &LocalPod, environment: &mut Environment) {
    environment.set(
        "FARM_BIND",
        pod.address.to_string(),
        "pods share one network here",
    );
}
// endregion: local
