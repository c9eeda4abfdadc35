//! The kind PyTorchJob as the library sees it.

use k8s_openapi::api::core::v1::{EnvVar, PodSpec};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::{JobStatus, ReplicaSpecs, RestartPolicy, RunPolicy};
use training_job::{
    Check, FieldErrors, Framework, JobObject, Milestone, ObjectDefinition, Outcome, Replica, ReplicaState,
    Replicas, Role, RoleDefinition, RoleSpecs, Scope, Topology, TrainingJob,
};

use crate::environment::{self, MASTER, WORKER};
use crate::{ElasticPolicy, elastic, objects, waiting, warnings};

const WORDS: [&str; 3] = ["auto", "cpu", "gpu"];
/// A distributed job of PyTorch.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kubeflow.org",
    version = "v1",
    kind = "PyTorchJob",
    plural = "pytorchjobs",
    singular = "pytorchjob",
    namespaced,
    doc = "A distributed job of PyTorch.",
    status = "JobStatus",
    derive = "PartialEq",
    printcolumn(name = "State", type_ = "string", json_path = ".status.conditions[-1:].type"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct PyTorchJobSpec {
    /// The replicas by role: Master and Worker. The Master, at most one, is rank 0; without it worker 0 is.
    #[serde(default)]
    pub pytorch_replica_specs: ReplicaSpecs,

    /// The policies of the job, such as restarts, deadline, clean-up, gang scheduling and suspension. Default: all
    /// unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_policy: Option<RunPolicy>,

    /// The controller that runs the job; the same as `runPolicy.managedBy`. Default: this operator. It cannot be
    /// changed after the job's creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "training_job::api::schema::managed_by")]
    pub managed_by: Option<String>,

    /// Makes the job elastic: the number of workers may change under torchrun. Default: the number is fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elastic_policy: Option<ElasticPolicy>,

    /// The number of processes that torchrun starts in each pod: a number of 1 or more in quotes, with at most 9
    /// digits; `gpu` or `cpu` for one process per GPU or CPU; or `auto` for one per GPU, or per CPU without GPUs.
    /// Default: `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 9))]
    pub nproc_per_node: Option<String>,
}

impl PyTorchJobSpec {
    /// Returns `nproc_per_node` for torchrun, `auto` by default. Returns `None` if only the older field of the elastic
    /// policy is set, which the environment of an elastic job handles.
    pub(crate) fn processes_per_node(&self) -> Option<&str> {
        let older = self.elastic_policy.as_ref().and_then(|p| p.n_proc_per_node);
        let unset = older.is_none().then_some(WORDS[0]);
        self.nproc_per_node.as_deref().or(unset)
    }

    /// Returns the number of processes in each pod, or 1 if `nprocPerNode` is not a number. The older field is ignored.
    pub(crate) fn processes_if_counted(&self) -> u64 {
        let counted = self.nproc_per_node.as_deref().and_then(number);
        counted.map_or(1, u64::from)
    }
}

/// Parses a number of 1 or more with at most nine digits, as the CEL rule does.
fn number(text: &str) -> Option<u32> {
    let is_short = text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|&number| is_short && number > 0)
}

const ROLES: &[RoleDefinition] = &[
    RoleDefinition::new(MASTER).at_most(1),
    RoleDefinition::new(WORKER),
];

impl TrainingJob for PyTorchJob {
    const FRAMEWORK: Framework = Framework::new("pytorch", "pytorchjob-controller")
        .aliases(&["torch"])
        .port("pytorchjob-port", 23456)
        .restart_policy(&RestartPolicy::OnFailure)
        .roles("pytorchReplicaSpecs", ROLES)
        .scales(WORKER)
        .objects(&[ObjectDefinition::new(objects::AUTOSCALER)
            .while_active()
            .optional()])
        .settings(&[waiting::IMAGE, waiting::TRIES]);

    fn replica_specs(&self) -> RoleSpecs<'_> {
        RoleSpecs::map(&self.spec.pytorch_replica_specs)
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
        environment::variables(&self.spec, topology, replica)
    }

    fn checks() -> Vec<Check<Self>> {
        let pattern = format!("^({}|0*[1-9][0-9]*)$", WORDS.join("|"));
        let known = format!("!has(self.nprocPerNode) || self.nprocPerNode.matches(\"{pattern}\")");
        let one =
            "!has(self.nprocPerNode) || !has(self.elasticPolicy) || !has(self.elasticPolicy.nProcPerNode)";
        let [in_order, enough] = elastic::checks();
        vec![
            Check::field(
                "nprocPerNode",
                "must be auto, cpu, gpu, or a number of 1 or more in quotes",
                "use auto for a process per GPU, or per CPU without GPUs",
                known,
                |job: &Self, _| {
                    let is_known = |text: &str| WORDS.contains(&text) || number(text).is_some();
                    job.spec.nproc_per_node.as_deref().is_none_or(is_known)
                },
            ),
            Check::field(
                "elasticPolicy.nProcPerNode",
                "must not be set together with spec.nprocPerNode, which replaces it",
                "remove it",
                one,
                |job, _| {
                    job.spec.nproc_per_node.is_none()
                        || job.elastic(|policy| policy.n_proc_per_node).is_none()
                },
            ),
            in_order,
            enough,
            Check::any_of(
                &[MASTER, WORKER],
                "must have a Master or a Worker",
                "add a Worker",
            ),
            Check::any_of(
                &[WORKER],
                "must have a Worker, because the workers of an elastic job meet at worker 0",
                "add a Worker, or remove spec.elasticPolicy",
            )
            .when(
                |job: &Self| job.spec.elastic_policy.is_some(),
                "has(self.elasticPolicy)",
            ),
        ]
    }

    fn validate(&self, _: &Topology<'_>, errors: &mut FieldErrors) {
        let policy = self.spec.elastic_policy.iter();
        policy.for_each(|policy| policy.check(errors));
    }

    fn warn(&self, topology: &Topology<'_>, found: &mut FieldErrors) {
        warnings::add(self, topology, found);
    }

    /// The master decides if there is one, because it is rank 0. Otherwise all workers decide. The first success is
    /// enough in an elastic job, because its workers end together.
    fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        if replicas.role(MASTER).is_some() {
            return replicas.decided_by(&[MASTER]);
        }
        let workers = replicas.role(WORKER);
        let one = workers.is_some_and(|workers| workers.count(ReplicaState::Succeeded) > 0);
        match one && self.spec.elastic_policy.is_some() {
            true => Outcome::Succeeded,
            false => replicas.decided_by(&[WORKER]),
        }
    }

    /// All replicas restart together, because the others exit with 1 when one process is killed, and policy `ExitCode`
    /// treats 1 as final. Elastic workers accept a restarted worker. If the lost worker was the rendezvous, the others
    /// exit with 1 as well, and restart under every policy except `ExitCode`.
    fn restart_scope(&self, topology: &Topology<'_>, role: &Role<'_>) -> Scope {
        let takes_back = self.spec.elastic_policy.is_some() && role.restart_policy != RestartPolicy::ExitCode;
        match takes_back {
            true => Scope::Replica,
            false => topology.collective_scope(),
        }
    }

    /// torchrun accepts workers within the bounds of the elastic policy. Without bounds it waits for a fixed number.
    fn is_elastic(&self, _: &Topology<'_>, role: &Role<'_>) -> bool {
        let has_bounds = self
            .elastic(|policy| policy.min_replicas.or(policy.max_replicas))
            .is_some();
        has_bounds && role.name() == WORKER
    }

    fn objects(&self, topology: &Topology<'_>, _: &Replicas<'_>) -> Vec<JobObject> {
        let policy = self.spec.elastic_policy.as_ref();
        let autoscaler = policy.and_then(|policy| objects::autoscaler(policy, topology));
        autoscaler.into_iter().collect()
    }

    fn customize(&self, topology: &Topology<'_>, replica: &Replica<'_>, pod: &mut PodSpec) {
        if let Some(waiting) = waiting::container(topology, replica) {
            pod.init_containers.get_or_insert_default().push(waiting);
        }
    }

    /// Returns true for the master, or for worker 0 if there is no master.
    fn is_dialed(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> bool {
        self.is_master(topology, replica)
    }

    fn is_master(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> bool {
        match topology.role(MASTER) {
            Some(_) => replica.role.name() == MASTER,
            None => replica.index == 0,
        }
    }

    /// Returns the Go operator's message, which contains the namespace if there is no master.
    fn message(&self, milestone: &Milestone<'_>) -> String {
        let (namespace, name) = (self.namespace().unwrap_or_default(), self.name_any());
        let mut roles = self.spec.pytorch_replica_specs.keys();
        let has_master = roles.any(|role| role.eq_ignore_ascii_case(MASTER));
        match has_master {
            true => milestone.describe("PyTorchJob", &name),
            false => milestone.describe_with_namespace("PyTorchJob", &namespace, &name),
        }
    }
}
