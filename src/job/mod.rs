//! The contract: what a framework author implements, and what the hooks are given.
//!
//! Read it in this order:
//!
//! | file | has |
//! |---|---|
//! | `mod.rs` | [`TrainingJob`], the trait |
//! | `framework.rs` | [`Framework`] and [`RoleDefinition`]: names, numbers and roles of a kind |
//! | `role_specs.rs` | [`RoleSpecs`]: what a job says of its roles |
//! | `topology.rs` | [`Topology`], [`Role`], [`Replica`]: who is in a job |
//! | `replicas.rs` | [`Replicas`], [`ReplicaState`], [`Outcome`]: what they are doing, and what that means |
//! | `requirement.rs`, `rule.rs`, `errors.rs` | [`Requirement`], [`Rule`], [`FieldErrors`]: what is refused, and in which words |
//! | `objects.rs` | [`ObjectDefinition`], [`ObjectKind`], [`JobObject`]: what a job has beside pods and services |
//! | `shared_environment.rs` | what is the same in the environment of all replicas, told once |
//! | `milestone.rs` | [`Milestone`]: the sentences of conditions and events |
//! | `settings.rs`, `accelerators.rs`, `gang_scheduler.rs` | [`Settings`]: what the operator was started with |

mod accelerators;
pub(crate) mod errors;
mod framework;
mod gang_scheduler;
mod milestone;
mod nearest;
mod objects;
mod replicas;
mod requirement;
mod role_specs;
pub(crate) mod rule;
mod settings;
mod shared_environment;
mod topology;

pub use accelerators::{Accelerator, Accelerators, HostVolume};
pub use errors::{FieldError, FieldErrors};
pub use framework::{Framework, RoleDefinition, SettingDefinition};
pub use gang_scheduler::GangScheduler;
pub use milestone::Milestone;
pub(crate) use nearest::nearest;
pub use objects::{JobObject, ObjectDefinition, ObjectKind};
pub use replicas::{FailureTolerance, Outcome, ReplicaState, Replicas, RoleReplicas};
pub use requirement::Requirement;
pub use role_specs::RoleSpecs;
pub use rule::{Rule, any_replica, any_with_replicas, roles_named};
pub use settings::Settings;
pub(crate) use shared_environment::SharedEnvironment;
pub(crate) use topology::Texts;
pub use topology::{Replica, ReplicaNames, Role, Topology};

use std::collections::BTreeMap;
use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Container, EnvVar, PodSpec};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResourceExt, Resource};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::api::schema::tidy_definition;
use crate::api::{JobStatus, RestartScope, RunPolicy};

/// A kind of training job.
///
/// Five items are required; they say what the job is made of. Everything else has a default, stated
/// at each hook, that suits a job whose replicas are equal and end by themselves.
///
/// # What a hook may rely on
///
/// * **Pure.** A hook is called again and again, for the same job, by the operator, by reviews without a
///   cluster, and in tests. It must give the same answer for the same arguments: no clock, no
///   randomness, no files, no state of its own. It is called between two calls to the API, so it must not
///   block.
/// * **Never on raw specs.** Hooks that take a [`Topology`] are called for jobs that passed the checks that all
///   kinds share: roles are known and within their bounds, each replica has the framework's container,
///   names fit, policies are words of the API. All but [`env`](Self::env) and [`validate`](Self::validate) are called
///   only for jobs that passed `validate` too.
/// * **No panics.** The operator survives a hook that panics, and tries the job again later, again and again: the
///   job stands still. What cannot be is an empty answer, or an error in [`validate`](Self::validate).
/// * **No errors.** The only hook that refuses is [`validate`](Self::validate); a job that passed can be rendered and
///   planned.
///
/// # When they are called
///
/// | when | hooks |
/// |---|---|
/// | the definition is made | [`definition`](Self::definition), [`requirements`](Self::requirements), [`rules`](Self::rules) |
/// | a job is validated: in each reconcile, and offline | [`replica_specs`](Self::replica_specs), [`replica_names`](Self::replica_names), [`run_policy`](Self::run_policy), [`run_policy_field`](Self::run_policy_field), [`managed_by`](Self::managed_by), [`env`](Self::env) (for its length), [`requirements`](Self::requirements), [`validate`](Self::validate), [`objects`](Self::objects) (for their kinds) |
/// | a review looks for what is surely not meant | [`warn`](Self::warn) |
/// | a review explains the job | [`reading`](Self::reading) |
/// | what a job has beside pods and services is rendered: in each reconcile of a job | [`objects`](Self::objects) |
/// | a replica's pod is rendered | [`env`](Self::env), [`labels`](Self::labels), [`is_master`](Self::is_master), [`customize`](Self::customize) |
/// | the plan takes its verdict | [`status`](Self::status), [`outcome`](Self::outcome), [`restart_scope`](Self::restart_scope), [`tolerance`](Self::tolerance), [`is_retryable`](Self::is_retryable), [`starts_after`](Self::starts_after), [`message`](Self::message) |
/// | the status is written | [`encode_status`](Self::encode_status) |
///
/// A running pod is never changed: what a hook says differently in a new version of the operator holds for
/// pods that are made from then on.
pub trait TrainingJob:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + CustomResourceExt
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// Names and numbers that are the same for all jobs of the kind.
    const FRAMEWORK: Framework;

    /// The replica specs by role, from wherever the kind keeps them. Required.
    ///
    /// [`RoleSpecs::map`] takes a map by role, [`RoleSpecs::list`] a list of entries; defaults that are to hold before
    /// the job is validated are filled in by [`RoleSpecs::filled_in`].
    ///
    /// Called on jobs as they are stored, valid or not. Roles are matched with [`Framework::roles`] without
    /// regard to case; one that matches none, or matches one twice, is a field error, as is a role beyond its
    /// bounds. A spec without a number of replicas has one.
    fn replica_specs(&self) -> RoleSpecs<'_>;

    /// The run policy, from wherever the kind keeps it. Required.
    ///
    /// Called on jobs as they are stored, valid or not. Defaults of [`RunPolicy`] apply to what is unset; negative
    /// numbers and unknown words are field errors.
    fn run_policy(&self) -> RunPolicy;

    /// Where the job has `field` of its run policy, such as `backoffLimit`, for messages. Default: below
    /// `spec.runPolicy`.
    fn run_policy_field(&self, field: &str) -> String {
        format!("spec.runPolicy.{field}")
    }

    /// Returns `spec.managedBy`, for a kind that has this field beside `runPolicy.managedBy`. Either field names the controller
    /// that runs the job; a job with two different names is not valid. Default: the kind has no such field.
    fn managed_by(&self) -> Option<&str> {
        None
    }

    /// The status, if the job has one. Required.
    ///
    /// It must be what the API server has below `/status`, unchanged: the operator remembers there what must
    /// outlive it, and writes what differs.
    fn status(&self) -> Option<&JobStatus>;

    /// The status as it is written to the API server. Default: `status` as it is.
    ///
    /// For a kind whose status has other fields, or more. What [`status`](Self::status) reads back from it must be equal
    /// to `status`: the operator remembers in it what must outlive it. `topology` says who is in the job; a job that is
    /// not valid has none. A job that is being deleted, which its metadata says, may have another status: it is written once.
    ///
    /// # Errors
    /// It is no JSON.
    fn encode_status(
        &self,
        status: &JobStatus,
        topology: Option<&Topology<'_>>,
    ) -> serde_json::Result<Value> {
        let _ = topology;
        serde_json::to_value(status)
    }

    /// The environment that `replica` gets, in order, in every container of its pod, or in
    /// [one alone](Framework::env_in_its_container_only). Required; it may be empty.
    ///
    /// Names of other replicas are made by [`Role::host`]; in the replicas' pods such a name leads to the pod, from before
    /// the pod is there where each replica has a service of its own. A name with dots is made with [`Topology::domain`].
    /// `replica` is one of `topology`'s. Roles that a valid job must have may still be missing: the length is checked before [`validate`](Self::validate) is asked.
    ///
    /// # Bounds
    /// A job in which the last replica of a role would get a variable of more than
    /// [`MAX_ENV_BYTES`](crate::validate::MAX_ENV_BYTES) is refused, as Linux starts no process with it. It is called once for
    /// each pod: a list of all replicas is best made by [`Topology::once`]. With such a list in each pod a job's bytes are the
    /// square of its size, unless its author asks for the layout [`Compact`](crate::api::Layout::Compact): what all values of a
    /// variable begin with is then told once, if it is long. So what differs belongs at the end of a value.
    ///
    /// A variable that the user sets under one of these names is replaced: what the framework needs
    /// to form its cluster is the operator's to say. All other variables of the user stay as they are.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::EnvVar;
    /// use training_job::{Replica, Topology, api::variable};
    ///
    /// fn env(topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
    ///     let hosts: Vec<String> = topology.all().map(|replica| replica.host()).collect();
    ///     vec![variable("HOSTS", hosts.join(",")), variable("RANK", replica.index.to_string())]
    /// }
    /// ```
    fn env(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar>;

    /// Roles of which one must have a replica. Default: none. Checked by the operator and, as rules, by the API server.
    fn requirements() -> Vec<Requirement<Self>> {
        Vec::new()
    }

    /// Adds what is wrong with the job beyond the checks that every kind gets. Default: nothing.
    ///
    /// Called only if the shared checks found nothing wrong, so `topology` is complete. A job with an error gets the
    /// condition Failed and one event with all of them, and no pods, until its spec changes; a job that already
    /// runs keeps its pods. An error names the field, what is wrong with it, and what to do.
    /// [`rules`](Self::rules) lets the API server say the same at once. A controller asks again once the spec, the labels
    /// or the annotations have changed; nothing else may count.
    ///
    /// ```
    /// use training_job::{FieldErrors, Topology};
    ///
    /// fn validate(topology: &Topology<'_>, errors: &mut FieldErrors) {
    ///     if topology.replicas("Worker") % 2 == 1 {
    ///         errors.push("spec.replicaSpecs", "workers come in pairs", "use an even number of them");
    ///     }
    /// }
    /// ```
    fn validate(&self, topology: &Topology<'_>, errors: &mut FieldErrors) {
        let _ = (topology, errors);
    }

    /// Adds what is legal in the job, and certainly not what its author wants: nothing that may be
    /// meant. Nobody is kept from running such a job. Default: nothing.
    ///
    /// Called by [`render::warnings`](crate::render::warnings()) alone, never by the operator.
    fn warn(&self, topology: &Topology<'_>, warnings: &mut FieldErrors) {
        let _ = (topology, warnings);
    }

    /// How the job is read, in a sentence or two, where that follows from how it is written: for a kind that took over
    /// from several others. `version` is the API version under which it was written, such as `v1beta1`. Default: there is
    /// nothing to say.
    fn reading(&self, version: &str) -> Option<String> {
        let _ = version;
        None
    }

    /// What the replicas' states mean for the job. Default: it runs when any replica runs, and has
    /// succeeded when all have.
    ///
    /// Failures need no answer here: a failed replica is restarted or fails the job by its restart
    /// policy, whatever this says; a failure that is final outweighs success.
    ///
    /// Called in each reconcile of a job that has not ended. All replicas of `topology` are there, in the
    /// state of their current attempt; one that failed and is to be restarted is
    /// [`Absent`](crate::ReplicaState::Absent). A success is final, once it has been held for
    /// [`Settings::success_hold`](crate::Settings::success_hold) for replicas that still run.
    /// [`Replicas::decided_by`] is the answer for most kinds in which some roles only serve.
    ///
    /// ```
    /// use training_job::{Outcome, Replicas};
    ///
    /// /// The head's end is the end of the job; workers only serve.
    /// fn outcome(replicas: &Replicas<'_>) -> Outcome {
    ///     replicas.decided_by(&["Head"])
    /// }
    /// ```
    fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        replicas.when_all_succeed()
    }

    /// What restarts together with a failed replica of `role`, unless the job
    /// ([`RunPolicy::restart_scope`]) or the operator ([`Settings::restart_scope`](crate::Settings::restart_scope)) says
    /// otherwise. Default: the replica alone.
    ///
    /// With another scope than [`Replica`](RestartScope::Replica), a pod that is deleted and a container that the kubelet
    /// restarts by itself are failures too: processes that train together do not take one back. The answer may not
    /// depend on the job's status.
    ///
    /// ```
    /// use training_job::{Role, Topology, api::RestartScope};
    ///
    /// /// A collective takes nobody back; a monitor beside it comes and goes.
    /// fn restart_scope(_: &Topology<'_>, role: &Role<'_>) -> RestartScope {
    ///     match role.name() {
    ///         "Monitor" => RestartScope::Replica,
    ///         _ => RestartScope::Job,
    ///     }
    /// }
    /// ```
    fn restart_scope(&self, topology: &Topology<'_>, role: &Role<'_>) -> RestartScope {
        let _ = (topology, role);
        RestartScope::Replica
    }

    /// Whether the job goes on without a replica of `role` that has failed for good.
    /// [`outcome`](Self::outcome) then sees the replica as failed. Default: it fails.
    ///
    /// It depends on the role alone: a role's failures matter or not from the start. Final failures are those that the
    /// restart policy does not restart.
    ///
    /// ```
    /// use training_job::{FailureTolerance, Role};
    ///
    /// fn tolerance(role: &Role<'_>) -> FailureTolerance {
    ///     match role.name() {
    ///         "Worker" => FailureTolerance::WhileOthersRemain,
    ///         "Notebook" => FailureTolerance::Always,
    ///         _ => FailureTolerance::None,
    ///     }
    /// }
    /// ```
    fn tolerance(&self, role: &Role<'_>) -> FailureTolerance {
        let _ = role;
        FailureTolerance::None
    }

    /// Whether a replica of `role` with restart policy `ExitCode` that ended with `exit_code` (1–255) is
    /// restarted. `reason` is the kubelet's word for the end, such as `Error` or `OOMKilled`. Default: from 128 on, which
    /// is what a signal leaves.
    ///
    /// Not asked about pods that failed without an exit code, such as evicted ones: they are restarted.
    fn is_retryable(&self, role: &Role<'_>, exit_code: i32, reason: &str) -> bool {
        let _ = (role, reason);
        exit_code >= 128
    }

    /// The roles whose replicas must all run, or have ended well, before a pod of `role` is made: also when they restart
    /// together. Default: none. A role may not wait for itself, nor two for each other.
    ///
    /// ```
    /// use training_job::{Role, Topology};
    ///
    /// /// The launcher starts its processes in the workers' pods.
    /// fn starts_after(_: &Topology<'_>, role: &Role<'_>) -> &'static [&'static str] {
    ///     match role.name() {
    ///         "Launcher" => &["Worker"],
    ///         _ => &[],
    ///     }
    /// }
    /// ```
    fn starts_after(&self, topology: &Topology<'_>, role: &Role<'_>) -> &'static [&'static str] {
        let _ = (topology, role);
        &[]
    }

    /// How the replicas of a role are called: the names of their pods and services. No replica of a job that may be compact
    /// is called `<job>-hosts`, as its one service is. Default:
    /// `<job>-<role in lower case>-<index>`.
    ///
    /// Names must be DNS-1035 labels, and no two replicas may share one. They must not change as long as the job lives:
    /// the operator finds a replica's pod by its name. A kind with other names says so by
    /// [`Framework::names_replicas`].
    ///
    /// ```
    /// use training_job::{ReplicaNames, RoleDefinition};
    ///
    /// fn replica_names(job: &str, role: &RoleDefinition) -> ReplicaNames {
    ///     match role.name {
    ///         // `primes-launcher`, without an index: there is only one.
    ///         "Launcher" => ReplicaNames::Bare(format!("{job}-launcher")),
    ///         _ => ReplicaNames::Indexed(format!("{job}-{}-x7f2", role.slug())),
    ///     }
    /// }
    /// ```
    fn replica_names(&self, role: &RoleDefinition) -> ReplicaNames {
        let job = self.meta().name.as_deref().unwrap_or_default();
        ReplicaNames::Indexed(format!("{job}-{}", role.slug()))
    }

    /// Further labels of a replica's pod and service. Default: none. Services do not select by them, and they cannot replace the labels
    /// that every kind has ([`labels`](crate::api::labels)).
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use training_job::{Replica, Topology};
    ///
    /// fn labels(_: &Topology<'_>, replica: &Replica<'_>) -> BTreeMap<String, String> {
    ///     [("task_index".to_owned(), replica.index.to_string())].into()
    /// }
    /// ```
    fn labels(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> BTreeMap<String, String> {
        let _ = (topology, replica);
        BTreeMap::new()
    }

    /// Whether the replica's pod is labelled `training.kubeflow.org/job-role: master`, by which the
    /// Python SDK picks the pods whose logs stand for the job's. Default: none is.
    fn is_master(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> bool {
        let _ = (topology, replica);
        false
    }

    /// True if the other replicas dial this one to meet, by its name. Default: false.
    ///
    /// If the job or its kind asks for a stable address ([`Framework::stable_address`]), its service has a cluster IP, so
    /// that the name leads to the new pod at once when the replica restarts: DNS caches keep the address of a pod for half
    /// a minute. At most one replica of a job is dialed for each of its clusters.
    ///
    /// ```
    /// use training_job::Replica;
    ///
    /// fn is_dialed(replica: &Replica<'_>) -> bool {
    ///     replica.role.name() == "Head"
    /// }
    /// ```
    fn is_dialed(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> bool {
        let _ = (topology, replica);
        false
    }

    /// Changes the replica's pod after everything else has been rendered. Default: nothing.
    ///
    /// The pod's name, labels and owner are not to be changed, and are out of reach. The pod must stay one that an API
    /// server takes: nothing is checked after this. Called once for each pod, never on pods that are there.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::PodSpec;
    /// use training_job::{Replica, Topology};
    ///
    /// fn customize(topology: &Topology<'_>, replica: &Replica<'_>, pod: &mut PodSpec) {
    ///     if replica.role.name() == "Worker" {
    ///         pod.termination_grace_period_seconds.get_or_insert(60);
    ///     }
    /// }
    /// ```
    fn customize(&self, topology: &Topology<'_>, replica: &Replica<'_>, pod: &mut PodSpec) {
        let _ = (topology, replica, pod);
    }

    /// The index of the framework's container among the containers of a pod template. Default: the container that
    /// [`Framework::container`] names, or the first one if it names none.
    ///
    /// That container gets the framework's environment and port, and its end is the replica's.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Container;
    ///
    /// /// The job names its container; the first one is meant if it names none.
    /// fn framework_container(named: Option<&str>, containers: &[Container]) -> Option<usize> {
    ///     match named {
    ///         Some(name) => containers.iter().position(|container| container.name == name),
    ///         None => (!containers.is_empty()).then_some(0),
    ///     }
    /// }
    /// ```
    fn framework_container(&self, containers: &[Container]) -> Option<usize> {
        Self::FRAMEWORK.container_of(containers)
    }

    /// What the job has beside the pods and services of its replicas, in the order in which it is made. Default: nothing.
    /// The kinds are declared by [`Framework::objects`].
    ///
    /// The operator makes these objects before the job's services and pods, with the job as their owner. One that is
    /// deleted is made again; one that differs in what is said here, because of an edit or because the hook now says
    /// something else, is patched, and keeps what nobody says anything of here (`null` removes a member). One that
    /// is not named any more is deleted. An object of that name that the job does not own is never touched: an event
    /// says so, and the job waits.
    ///
    /// Pods and services may be among them: they are in no count, restarted by nobody but their kubelet, made again if they
    /// are gone or have ended, and otherwise left as they are. Their names may not depend on `replicas`, nor be a replica's.
    ///
    /// How long objects stay is declared by [`ObjectDefinition`]. Those of a suspended or finished job that stay are still
    /// patched, and not made again. `replicas` are in the states in which the plan found them. In a render without a
    /// cluster they are all [`Pending`](crate::ReplicaState::Pending).
    ///
    /// ConfigMaps called `<job>-env-` and 16 hexadecimal digits are the library's own: they hold what the environments of a
    /// [compact](crate::api::Layout::Compact) job have in common.
    ///
    /// The operator needs the permissions to get, list, watch, create, patch and delete the kinds, and to have itself
    /// whatever a Role among them grants.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use serde_json::json;
    /// use training_job::{JobObject, ObjectKind, Replicas, Topology};
    ///
    /// const CONFIG: ObjectKind = ObjectKind::of::<ConfigMap>();
    ///
    /// fn objects(topology: &Topology<'_>, _: &Replicas<'_>) -> Vec<JobObject> {
    ///     let hosts: String = topology.all().map(|replica| replica.host() + "\n").collect();
    ///     vec![CONFIG.object(format!("{}-hosts", topology.job), json!({"data": {"hostfile": hosts}}))]
    /// }
    /// ```
    fn objects(&self, topology: &Topology<'_>, replicas: &Replicas<'_>) -> Vec<JobObject> {
        let _ = (topology, replicas);
        Vec::new()
    }

    /// The sentence for a milestone, in conditions and events. Default: the Go operator's words
    /// ([`Milestone::describe`]).
    ///
    /// Asked when a plan reaches the milestone; a condition keeps the sentence that it was first given.
    fn message(&self, milestone: &Milestone<'_>) -> String {
        milestone.describe(&Self::kind(&()), &self.meta().name.clone().unwrap_or_default())
    }

    /// Rules in CEL on the spec, by which an API server refuses what [`validate`](Self::validate) would, in
    /// the same words. Default: none.
    ///
    /// They apply to jobs of which a role has a replica. What every kind is checked for has its rules
    /// already. [`any_replica`], [`any_with_replicas`] and [`roles_named`] make expressions that are cheap enough.
    ///
    /// # Bounds
    /// An API server estimates what a rule costs at worst, and refuses the definition if that is too much. A rule that
    /// refuses what `validate` takes keeps users from what would run; one that is missing only tells them later.
    /// `testing::check_definition` (feature `testing`) finds both without a server.
    fn rules() -> Vec<Rule> {
        Vec::new()
    }

    /// The shape of the custom resource; [`admission::definition`](crate::admission::definition) makes
    /// of it what is to be installed. Default: what `#[derive(CustomResource)]` says, made
    /// [tidy](crate::api::schema::tidy_definition), with the field of the replica specs required.
    fn definition() -> CustomResourceDefinition {
        tidy_definition(Self::crd(), &[Self::FRAMEWORK.roles_field])
    }
}
