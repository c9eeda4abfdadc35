//! The kind MPIJob as the library sees it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EnvVar, PodSpec, PodTemplateSpec};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;
use training_job::api::{CleanPodPolicy, JobStatus, RunPolicy};
use training_job::{
    Check, FieldErrors, Framework, JobObject, Milestone, ObjectDefinition, Outcome, Replica, ReplicaNames,
    ReplicaState, Replicas, Role, RoleDefinition, RoleSpecs, Scope, Topology, TrainingJob,
};

use crate::api::{CREATION_POLICIES, MPIJob, MPIJobStatus, Version};
use crate::roles::{LAUNCHER, WORKER};
use crate::{definition, environment, objects, settings, ssh, v2beta1};

/// The scheduler of a pod that names none.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// The prefixes of the labels and annotations that put a pod into a group whose size is set outside the job: those of
/// the coscheduling plugin, of its older version, and of Koordinator.
const GROUP_KEYS: [&str; 3] = [
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "gang.scheduling.koordinator.sh/",
];

/// The flag of elastic Horovod. Horovod runs a script that prints the hosts, and continues without hosts that fail.
const ELASTIC_FLAG: &str = "--host-discovery-script";

/// The name of the main container if the job does not name one.
const USUAL_CONTAINER: &str = "mpi";

impl MPIJob {
    fn main_container(&self) -> Option<&str> {
        self.spec
            .main_container
            .as_deref()
            .filter(|name| !name.is_empty())
    }

    /// Returns true if the job has ended or is suspended. The launcher then starts no more processes.
    fn is_over(&self) -> bool {
        let is_suspended = self.spec.run_policy.as_ref().and_then(|policy| policy.suspend);
        is_suspended == Some(true) || self.is_finished()
    }

    fn own_clean_up(&self) -> Option<CleanPodPolicy> {
        self.spec.run_policy.as_ref()?.clean_pod_policy.clone()
    }
}

/// Returns true if the launcher's program continues when workers join or fail.
fn is_elastic(launcher: &Role<'_>) -> bool {
    let words = launcher
        .main_container()
        .map(|container| [&container.command, &container.args]);
    let mut words = words.into_iter().flatten().flatten().flatten();
    words.any(|word| word.contains(ELASTIC_FLAG))
}

/// Returns true if a gang scheduler other than the operator's own waits for all pods of the job. The operator creates
/// PodGroups for its own gang scheduler.
fn is_in_foreign_gang(topology: &Topology<'_>) -> bool {
    let own = topology.settings.gang_scheduler.as_ref();
    let is_foreign = |name: &str| {
        let is_own = own.is_some_and(|own| own.name() == name);
        !name.is_empty() && name != DEFAULT_SCHEDULER && !is_own
    };
    let is_grouped = |template: &PodTemplateSpec| {
        let meta = template.metadata.iter();
        let mut keys = meta
            .flat_map(|m| [&m.labels, &m.annotations])
            .flatten()
            .flat_map(BTreeMap::keys);
        keys.any(|key| GROUP_KEYS.iter().any(|group| key.starts_with(group)))
    };
    topology.roles.iter().map(|role| role.template()).any(|template| {
        let scheduler = template
            .spec
            .as_ref()
            .and_then(|spec| spec.scheduler_name.as_deref());
        scheduler.is_some_and(is_foreign) || is_grouped(template)
    })
}

/// Returns the name of the workers' main container if it is not the default container of `kubectl exec`.
fn unusual_container<'t>(topology: &'t Topology<'_>) -> Option<&'t str> {
    let workers = topology.role(WORKER)?;
    let main = workers.main_container()?;
    (workers.container != Some(0)).then_some(&main.name)
}

/// The declarations of both versions.
const SHARED: Framework = Framework::new("mpi", "mpijob-controller")
    .aliases(&["horovod"])
    .first_container()
    .no_port()
    .env_main_container_only()
    .names_replicas();

const LAUNCHER_ROLE: RoleDefinition = RoleDefinition::new(LAUNCHER)
    .exactly(1)
    .without_services()
    .survives_container_restart();
const WORKER_ROLE: RoleDefinition = RoleDefinition::new(WORKER).without_services();

const V2BETA1: Framework = SHARED
    .controller(v2beta1::OPERATOR, v2beta1::EVENT_SOURCE)
    .version("v2beta1")
    .roles("mpiReplicaSpecs", &[LAUNCHER_ROLE.when_ready(), WORKER_ROLE])
    .objects(&[
        ObjectDefinition::new(v2beta1::SERVICE),
        ObjectDefinition::new(objects::CONFIG),
        ObjectDefinition::new(v2beta1::SECRET).created_once(),
    ]);

impl TrainingJob for MPIJob {
    const FRAMEWORK: Framework = SHARED
        .variants(&[V2BETA1])
        .roles("mpiReplicaSpecs", &[LAUNCHER_ROLE, WORKER_ROLE])
        .objects(&[
            ObjectDefinition::new(objects::ACCOUNT).while_active(),
            ObjectDefinition::new(objects::CONFIG).while_active(),
            ObjectDefinition::new(objects::ROLE).while_active(),
            ObjectDefinition::new(objects::BINDING)
                .while_active()
                .refers_to(&[objects::ACCOUNT, objects::ROLE]),
        ])
        .annotated_fields(&["launcherCreationPolicy"])
        .settings(&[settings::DELIVERY_IMAGE, settings::SHELL_IMAGE]);

    fn framework(&self) -> &'static Framework {
        match self.version() {
            Version::V1 => const { &Self::FRAMEWORK },
            Version::V2beta1 => const { &V2BETA1 },
        }
    }

    fn replica_specs(&self) -> RoleSpecs<'_> {
        let version = self.version();
        RoleSpecs::map(&self.spec.mpi_replica_specs).filled_in(|role, spec| match version {
            Version::V1 if role.is(WORKER) => _ = spec.replicas.get_or_insert(0),
            Version::V1 => {}
            Version::V2beta1 => v2beta1::fill_in(role, spec),
        })
    }

    fn run_policy(&self) -> RunPolicy {
        let policy = RunPolicy {
            clean_pod_policy: self.own_clean_up().or(self.spec.clean_pod_policy.clone()),
            ..self.spec.run_policy.clone().unwrap_or_default()
        };
        match self.version() {
            Version::V1 => policy,
            Version::V2beta1 => v2beta1::run_policy(self, policy),
        }
    }

    fn run_policy_field(&self, field: &str) -> String {
        match field == "cleanPodPolicy" && self.own_clean_up().is_none() {
            true => "spec.cleanPodPolicy".to_owned(),
            false => format!("spec.runPolicy.{field}"),
        }
    }

    /// A job that mpi-operator has begun stays its own while the launcher is a pod of a Job, beside which another launcher
    /// would start.
    fn managed_by(&self) -> Option<&str> {
        match self.is_run_by_mpi_operator() && !self.is_finished() {
            true => Some(v2beta1::MANAGER),
            false => self.spec.managed_by.as_deref(),
        }
    }

    fn status(&self) -> Option<&JobStatus> {
        self.status.as_ref().map(|status| &status.job)
    }

    fn encode_status(&self, status: &JobStatus, _: Option<&Topology<'_>>) -> serde_json::Result<Value> {
        serde_json::to_value(MPIJobStatus {
            version: Some(self.version()),
            job: status.clone(),
        })
    }

    fn env(&self, _: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
        match self.version() {
            Version::V1 => environment::variables(replica),
            Version::V2beta1 => v2beta1::variables(self, replica),
        }
    }

    fn validate(&self, topology: &Topology<'_>, errors: &mut FieldErrors) {
        let creation = self.spec.launcher_creation_policy.as_deref().unwrap_or_default();
        if !creation.is_empty() && !CREATION_POLICIES.contains(&creation) {
            errors.unknown_word("spec.launcherCreationPolicy", creation, &CREATION_POLICIES);
        }
        errors.check_range("spec.slotsPerWorker", self.spec.slots_per_worker, 1..);
        if self.version() == Version::V2beta1 {
            v2beta1::validate(self, topology, errors);
        }
    }

    fn warn(&self, topology: &Topology<'_>, warnings: &mut FieldErrors) {
        let launcher = topology.role(LAUNCHER);
        // The pods of v2beta1 have keys.
        let Some(launcher) = launcher.filter(|_| self.version() == Version::V1) else {
            return;
        };
        let Some(spec) = &launcher.template().spec else {
            return;
        };
        let all = [
            (
                "initContainers",
                spec.init_containers.as_deref().unwrap_or_default(),
            ),
            ("containers", &spec.containers),
        ];
        for (list, containers) in all {
            for (n, container) in containers.iter().enumerate() {
                let words = [&container.command, &container.args]
                    .into_iter()
                    .flatten()
                    .flatten();
                let words: Vec<&str> = words.map(String::as_str).collect();
                let variables = container.env.iter().flatten();
                let variables = variables.filter_map(|variable| {
                    // The operator replaces a remote shell of Open MPI, and the shared checks warn about that.
                    let value = variable
                        .value
                        .as_deref()
                        .filter(|_| !variable.name.ends_with("_agent"))?;
                    let found = ssh::use_in_variable(&variable.name, value)?;
                    Some(("env", found, format!("{}={value}", variable.name)))
                });
                let field = if container.command.is_none() {
                    "args"
                } else {
                    "command"
                };
                let in_command = ssh::uses(&words)
                    .into_iter()
                    .map(|(found, text)| (field, found, text));
                for (field, found, text) in in_command.chain(variables) {
                    let (problem, remedy) = found.describe(&text);
                    let path = format!("{}.template.spec.{list}[{n}].{field}", launcher.field);
                    warnings.push(path, problem, remedy);
                }
            }
        }
    }

    fn describe_compatibility(&self, _: &str) -> Option<String> {
        let text =
            "The job runs by the rules of v2beta1: processes start by SSH, as under mpi-operator v0.8.2.";
        (self.version() == Version::V2beta1).then(|| text.to_owned())
    }

    fn checks() -> Vec<Check<Self>> {
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
        vec![Check::field(
            "mainContainer",
            "must be the name of a container of the workers",
            "correct it, or remove the field",
            rule,
            |job, topology| {
                let (Some(name), Some(workers)) = (job.main_container(), topology.role(WORKER)) else {
                    return true;
                };
                let mut containers = workers.template().spec.iter().flat_map(|spec| &spec.containers);
                containers.any(|container| container.name == name)
            },
        )]
    }

    fn definition() -> CustomResourceDefinition {
        definition::of_both_versions(Self::FRAMEWORK.roles_field)
    }

    /// The launcher decides, because workers sleep until it starts processes in them. An exception: Open MPI 5 exits
    /// with 0 when a worker is killed, so the launcher's success does not count while a worker is lost. A job of v2beta1 runs
    /// when the workers run, too.
    fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        use ReplicaState::{Absent, Failed, Stopping};
        let is_lost = |state: &ReplicaState| matches!(state, Absent | Stopping | Failed);
        let workers = replicas.role(WORKER);
        let lost = workers.is_some_and(|workers| workers.states.iter().any(is_lost));
        let all_run = workers.is_none_or(|workers| workers.states.iter().all(|state| state.runs()));
        let launcher = replicas.role(LAUNCHER);
        let needs_all = !launcher.is_some_and(|launcher| is_elastic(launcher.role));
        match replicas.decided_by(&[LAUNCHER]) {
            Outcome::Succeeded if lost && needs_all => Outcome::Running,
            Outcome::Running if self.version() == Version::V2beta1 && !all_run => Outcome::Waiting,
            outcome => outcome,
        }
    }

    /// The whole job restarts, because `mpirun` ends when one of its processes or daemons ends, and accepts no new
    /// one. With elastic Horovod only the replica restarts, because the other workers continue.
    ///
    /// In v2beta1 a failed launcher restarts alone, because the workers run only `sshd`.
    fn restart_scope(&self, topology: &Topology<'_>, role: &Role<'_>) -> Scope {
        let is_alone = self.version() == Version::V2beta1 && role.name() == LAUNCHER;
        match is_alone || topology.role(LAUNCHER).is_some_and(is_elastic) {
            true => Scope::Replica,
            false => topology.collective_scope(),
        }
    }

    fn starts_after(&self, topology: &Topology<'_>, role: &Role<'_>) -> &'static [&'static str] {
        let [at_startup, _] = CREATION_POLICIES;
        let at_once = match self.spec.launcher_creation_policy.as_deref() {
            None | Some("") => self.version() == Version::V2beta1 || is_in_foreign_gang(topology),
            Some(policy) => policy == at_startup,
        };
        match role.name() {
            LAUNCHER if !at_once => &[WORKER],
            _ => &[],
        }
    }

    fn replica_names(&self, role: &Role<'_>) -> ReplicaNames {
        let job = self.metadata.name.as_deref().unwrap_or_default();
        let named = self
            .named_launcher()
            .filter(|_| self.version() == Version::V2beta1);
        match role.name() {
            LAUNCHER => ReplicaNames::Single(named.map_or_else(|| objects::launcher(job), str::to_owned)),
            _ => role.names.clone(),
        }
    }

    /// Returns the labels of the pods of mpi-operator: its first version for v1, for clients that select pods by them.
    fn labels(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> BTreeMap<String, String> {
        match self.version() {
            Version::V1 => [
                ("mpi-job-name".to_owned(), topology.job.to_owned()),
                ("mpi-job-role".to_owned(), replica.role.slug.clone()),
            ]
            .into(),
            Version::V2beta1 => v2beta1::labels(self, replica),
        }
    }

    fn first_index(&self, role: &Role<'_>) -> u32 {
        let computes = self.version() == Version::V2beta1 && self.launcher_computes();
        u32::from(computes && role.name() == WORKER)
    }

    fn framework_container(&self, role: &Role<'_>) -> Option<usize> {
        let containers = role.containers();
        let named = |name: &str| containers.iter().position(|container| container.name == name);
        let main = match self.version() {
            Version::V1 => self
                .main_container()
                .and_then(named)
                .or_else(|| named(USUAL_CONTAINER)),
            Version::V2beta1 => None,
        };
        main.or_else(|| (!containers.is_empty()).then_some(0))
    }

    /// The label that marks a master has the name of the role in v2beta1.
    fn is_master(&self, _: &Topology<'_>, replica: &Replica<'_>) -> bool {
        replica.role.name() == LAUNCHER && self.version() == Version::V1
    }

    fn prints_progress(&self, _: &Topology<'_>, replica: &Replica<'_>) -> bool {
        replica.role.name() == LAUNCHER
    }

    fn objects(&self, topology: &Topology<'_>, replicas: &Replicas<'_>) -> Vec<JobObject> {
        if self.version() == Version::V2beta1 {
            return v2beta1::objects(self, topology, replicas);
        }
        let container = self.main_container().or_else(|| unusual_container(topology));
        objects::all(topology, replicas, self.slots(), container, self.is_over())
    }

    fn customize(&self, topology: &Topology<'_>, replica: &Replica<'_>, pod: &mut PodSpec) {
        match self.version() {
            Version::V1 => environment::mount(topology, replica, pod),
            Version::V2beta1 => v2beta1::customize(self, topology, replica, pod),
        }
    }

    fn is_retryable(&self, role: &Role<'_>, exit_code: i32, _: &str) -> bool {
        exit_code >= 128 || self.version() == Version::V2beta1 && role.name() == LAUNCHER
    }

    fn message(&self, milestone: &Milestone<'_>) -> String {
        let name = self.metadata.name.as_deref().unwrap_or_default();
        let namespace = self.metadata.namespace.as_deref().unwrap_or_default();
        match self.version() {
            Version::V1 => milestone.describe("MPIJob", name),
            Version::V2beta1 => v2beta1::message(milestone, namespace, name),
        }
    }
}
