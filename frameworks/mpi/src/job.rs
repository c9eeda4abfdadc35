//! What makes an MPIJob an MPIJob.

use k8s_openapi::api::core::v1::{EnvVar, PodSpec};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use training_job::api::{CleanPodPolicy, JobStatus, ReplicaSpecs, RestartScope, RunPolicy};
use training_job::{
    FieldErrors, Framework, JobObject, ObjectDefinition, Outcome, Replica, ReplicaNames, ReplicaState,
    Replicas, Role, RoleDefinition, RoleSpecs, Rule, Topology, TrainingJob,
};

use crate::{environment, objects};

pub(crate) const LAUNCHER: &str = "Launcher";
pub(crate) const WORKER: &str = "Worker";

const NO_SUCH_CONTAINER: [&str; 2] = [
    "the workers have no container of this name",
    "name one of theirs, or leave it out",
];

/// A job that `mpirun` starts.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kubeflow.org",
    version = "v1",
    kind = "MPIJob",
    plural = "mpijobs",
    singular = "mpijob",
    namespaced,
    doc = "A job that mpirun starts.",
    status = "JobStatus",
    derive = "PartialEq",
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.conditions[-1:].type")
)]
#[serde(rename_all = "camelCase")]
pub struct MPIJobSpec {
    /// The replicas by role: Launcher and Worker. A Worker without a number of replicas has none.
    #[serde(default)]
    pub mpi_replica_specs: ReplicaSpecs,

    /// How the job runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_policy: Option<RunPolicy>,

    /// Processes on each worker, as the hostfile says; 1 if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub slots_per_worker: Option<i32>,

    /// The container of the workers in which processes are started; the first if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub main_container: Option<String>,

    /// Which pods go when the job has ended, unless `runPolicy` says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean_pod_policy: Option<CleanPodPolicy>,

    /// When the launcher is made: once all workers run (`WaitForWorkersReady`, also if unset), or with them, as under the Go
    /// operator (`AtStartup`); `mpirun` may then come too early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "launcher_creation_policies")]
    pub launcher_creation_policy: Option<String>,
}

/// The words for when the launcher is made.
const CREATION_POLICIES: [&str; 2] = ["AtStartup", "WaitForWorkersReady"];

fn launcher_creation_policies(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let [at_once, after_workers] = CREATION_POLICIES;
    schemars::json_schema!({ "type": "string", "enum": [at_once, after_workers, ""] })
}

impl MPIJob {
    /// Processes on each worker.
    pub(crate) fn slots(&self) -> i32 {
        self.spec.slots_per_worker.unwrap_or(1)
    }

    fn main_container(&self) -> Option<&str> {
        self.spec
            .main_container
            .as_deref()
            .filter(|name| !name.is_empty())
    }

    fn own_clean_up(&self) -> Option<CleanPodPolicy> {
        self.spec.run_policy.as_ref()?.clean_pod_policy.clone()
    }
}

impl TrainingJob for MPIJob {
    const FRAMEWORK: Framework = Framework::new("mpi", "mpijob-controller")
        .first_container()
        .no_port()
        .env_in_its_container_only()
        .roles(
            "mpiReplicaSpecs",
            &[
                RoleDefinition::new(LAUNCHER)
                    .exactly(1)
                    .without_services()
                    .rejoins(),
                RoleDefinition::new(WORKER).without_services(),
            ],
        )
        .objects(&[
            ObjectDefinition::new(objects::ACCOUNT),
            ObjectDefinition::new(objects::CONFIG),
            ObjectDefinition::new(objects::ROLE),
            ObjectDefinition::new(objects::BINDING),
        ])
        .names_replicas()
        .settings(&[environment::DELIVERY_IMAGE, environment::SHELL_IMAGE]);

    fn replica_specs(&self) -> RoleSpecs<'_> {
        RoleSpecs::map(&self.spec.mpi_replica_specs).filled_in(|role, spec| {
            if role.eq_ignore_ascii_case(WORKER) {
                spec.replicas.get_or_insert(0);
            }
        })
    }

    fn run_policy(&self) -> RunPolicy {
        RunPolicy {
            clean_pod_policy: self.own_clean_up().or(self.spec.clean_pod_policy.clone()),
            ..self.spec.run_policy.clone().unwrap_or_default()
        }
    }

    fn run_policy_field(&self, field: &str) -> String {
        match field == "cleanPodPolicy" && self.own_clean_up().is_none() {
            true => "spec.cleanPodPolicy".to_owned(),
            false => format!("spec.runPolicy.{field}"),
        }
    }

    fn status(&self) -> Option<&JobStatus> {
        self.status.as_ref()
    }

    fn env(&self, _: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
        environment::variables(replica)
    }

    fn validate(&self, topology: &Topology<'_>, errors: &mut FieldErrors) {
        let creation = self.spec.launcher_creation_policy.as_deref().unwrap_or_default();
        if !creation.is_empty() && !CREATION_POLICIES.contains(&creation) {
            errors.unknown_word("spec.launcherCreationPolicy", creation, &CREATION_POLICIES);
        }
        errors.check_range("spec.slotsPerWorker", self.spec.slots_per_worker, 1..);
        let (Some(name), Some(workers)) = (self.main_container(), topology.role(WORKER)) else {
            return;
        };
        let spec = workers.template().spec.iter();
        if !spec
            .flat_map(|spec| &spec.containers)
            .any(|container| container.name == name)
        {
            let [problem, remedy] = NO_SUCH_CONTAINER;
            errors.push("spec.mainContainer", problem, remedy);
        }
    }

    fn rules() -> Vec<Rule> {
        let specs = format!("self.{}", Self::FRAMEWORK.roles_field);
        let spec = format!("{specs}[k].template.spec");
        let has_it = format!("{spec}.containers.exists(c, c.name == self.mainContainer)");
        let has_template =
            format!("has({specs}[k].template) && has({specs}[k].template.spec) && has({spec}.containers)");
        let is_worker = format!("k == \"{WORKER}\" && {specs}[k].?replicas.orValue(0) > 0");
        let rule = format!(
            "!has(self.mainContainer) || self.mainContainer == \"\" || \
             {specs}.all(k, !({is_worker} && {has_template}) || {has_it})"
        );
        vec![Rule::new(rule, NO_SUCH_CONTAINER.join("; ")).at("mainContainer")]
    }

    /// The launcher decides: workers sleep until it starts processes in them. But Open MPI 5 ends with 0 when a worker is
    /// killed, so a launcher whose workers are not all there has not done its work.
    fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        let is_lost = |state: &ReplicaState| {
            matches!(
                state,
                ReplicaState::Absent | ReplicaState::Stopping | ReplicaState::Failed
            )
        };
        let workers = replicas.role(WORKER);
        let lost = workers.is_some_and(|workers| workers.states.iter().any(is_lost));
        match replicas.decided_by(&[LAUNCHER]) {
            Outcome::Succeeded if lost => Outcome::Running,
            outcome => outcome,
        }
    }

    /// `mpirun` ends when one of its processes or daemons does, and takes no new one in. A launcher that its kubelet restarts
    /// finds the workers as they were.
    fn restart_scope(&self, topology: &Topology<'_>, _: &Role<'_>) -> RestartScope {
        topology.collective_scope()
    }

    fn starts_after(&self, _: &Topology<'_>, role: &Role<'_>) -> &'static [&'static str] {
        let at_once = self.spec.launcher_creation_policy.as_deref() == Some(CREATION_POLICIES[0]);
        match role.name() {
            LAUNCHER if !at_once => &[WORKER],
            _ => &[],
        }
    }

    fn replica_names(&self, role: &RoleDefinition) -> ReplicaNames {
        let job = self.metadata.name.as_deref().unwrap_or_default();
        let name = format!("{job}-{}", role.slug());
        match role.name {
            LAUNCHER => ReplicaNames::Bare(name),
            _ => ReplicaNames::Indexed(name),
        }
    }

    fn is_master(&self, _: &Topology<'_>, replica: &Replica<'_>) -> bool {
        replica.role.name() == LAUNCHER
    }

    fn objects(&self, topology: &Topology<'_>, replicas: &Replicas<'_>) -> Vec<JobObject> {
        objects::all(topology, replicas, self.slots(), self.main_container())
    }

    fn customize(&self, topology: &Topology<'_>, replica: &Replica<'_>, pod: &mut PodSpec) {
        environment::mount(topology, replica, pod);
    }
}
