//! The contract: the trait that a framework author implements, and the arguments of its hooks.
//!
//! Read it in this order:
//!
//! | file | contents |
//! |---|---|
//! | `mod.rs` | [`TrainingJob`], the trait |
//! | `any_job.rs`, `kind.rs`, `schemas.rs` | [`AnyJob`], [`Kind`]: a job and a kind whose Rust type is erased. The rest of the library takes these |
//! | `framework.rs`, `role_definition.rs` | [`Framework`] and [`RoleDefinition`]: names, numbers and roles of a kind |
//! | `role_specs.rs` | [`RoleSpecs`]: the replica specs of a job |
//! | `topology.rs` | [`Topology`], [`Role`], [`Replica`]: the roles and replicas of a job |
//! | `replicas.rs` | [`Replicas`], [`ReplicaState`], [`Outcome`]: the states of the replicas, and that of the job |
//! | `restart.rs`, `scope.rs` | [`ReplicaFailure`], [`Restart`], [`Scope`]: a failure, and the answer to it |
//! | `check.rs`, `rule.rs`, `errors.rs` | [`Check`], [`Rule`], [`FieldErrors`]: checks and their messages |
//! | `objects.rs` | [`ObjectDefinition`], [`ObjectKind`], [`JobObject`]: objects in addition to pods and services |
//! | `shared_environment.rs` | the common part of the environments of all replicas |
//! | `milestone.rs` | [`Milestone`]: the messages of conditions and events |
//! | `settings.rs`, `accelerators.rs`, `gang_scheduler.rs` | [`Settings`]: the settings of the operator |

mod accelerators;
mod any_job;
mod check;
pub(crate) mod errors;
mod framework;
mod gang_scheduler;
mod hook;
mod kind;
mod milestone;
mod nearest;
mod objects;
mod replicas;
mod restart;
mod role_definition;
mod role_specs;
pub(crate) mod rule;
mod schemas;
mod scope;
mod settings;
mod shared_environment;
mod topology;

pub use accelerators::{Accelerator, Accelerators, HostVolume};
pub use any_job::AnyJob;
pub use check::Check;
pub(crate) use errors::Complaint;
pub use errors::{FieldError, FieldErrors};
pub use framework::{Framework, SettingDefinition};
pub use gang_scheduler::GangScheduler;
#[doc(hidden)]
pub use hook::HookPanic;
pub(crate) use hook::hook;
pub use kind::Kind;
pub use milestone::Milestone;
pub use nearest::nearest;
pub use objects::{JobObject, Mount, MountDefinition, ObjectDefinition, ObjectKind};
pub(crate) use replicas::PodReports;
pub use replicas::{FailureTolerance, Outcome, PodReport, ReplicaState, Replicas, RoleReplicas};
pub use restart::{Cause, ReplicaFailure, Restart};
pub use role_definition::{RoleDefinition, RoleSource, StartCondition};
pub(crate) use role_specs::RoleSpec;
pub use role_specs::{RoleEntry, RoleSpecs};
pub use rule::{Rule, any_replica, any_with_replicas, roles_named};
pub(crate) use schemas::SchemaVersion;
pub use schemas::Schemas;
pub use scope::Scope;
pub use settings::Settings;
pub(crate) use shared_environment::SharedEnvironment;
pub(crate) use topology::SharedTexts;
pub use topology::{Replica, ReplicaNames, Role, Topology};

use std::collections::BTreeMap;
use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{EnvVar, PodSpec};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResourceExt, Resource};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::api::schema::tidy_definition;
use crate::api::{JobStatus, RunPolicy};

/// A kind of training job.
///
/// Five items are required: they define the roles, the policies, the status and the environment. Every other hook has a
/// documented default, which suits a job whose replicas are equal and end by themselves.
///
/// # Contract of the hooks
///
/// * **Pure.** A hook is called many times for the same job: by the operator, by offline reviews and by tests. It must
///   return the same value for the same arguments, without a clock, randomness, files or state of its own. It runs
///   between two calls to the API, so it must not block.
/// * **Checked specs.** Hooks that take a [`Topology`] are called only for jobs that passed the checks that all kinds
///   share: roles are known and within their bounds, each replica has the framework's container, names have valid
///   lengths, and policies are words of the API. All except [`env`](Self::env) and [`validate`](Self::validate) are
///   called only for jobs that passed `validate` as well.
/// * **No panics.** The operator catches the panic of a hook and retries the job later, but the job makes no progress.
///   For input that cannot occur, return an empty value, or an error from [`validate`](Self::validate).
/// * **No errors.** Only [`validate`](Self::validate) rejects jobs. A job that passed can be rendered and planned.
///
/// # Calls
///
/// The last column has the hooks that may read the job's status. The others are called offline, for jobs without a status,
/// or their result is cached until the spec, the labels or the annotations change.
///
/// | step | hooks | may read the status |
/// |---|---|---|
/// | the definition is made | [`definition`](Self::definition), [`checks`](Self::checks) | – |
/// | a job is read, in each reconcile and offline | [`framework`](Self::framework), [`replica_specs`](Self::replica_specs), [`run_policy`](Self::run_policy), [`run_policy_field`](Self::run_policy_field), [`managed_by`](Self::managed_by), [`replica_names`](Self::replica_names) | `framework`, `replica_specs`, for the number of replicas, and `run_policy` |
/// | a job is validated, once for each version of its spec | [`env`](Self::env) (for its length), [`checks`](Self::checks), [`validate`](Self::validate), [`objects`](Self::objects) (for their kinds) | none |
/// | an offline review looks for likely mistakes | [`warn`](Self::warn) | none |
/// | a first job is written | [`example`](Self::example) | – |
/// | an offline review explains the job | [`describe_compatibility`](Self::describe_compatibility), [`describe_success`](Self::describe_success) | none |
/// | objects in addition to pods and services are rendered, in each reconcile | [`objects`](Self::objects) | `objects` |
/// | a replica's pod is rendered, or its number of replicas changes | [`env`](Self::env), [`labels`](Self::labels), [`first_index`](Self::first_index), [`is_master`](Self::is_master), [`mounts`](Self::mounts), [`customize`](Self::customize) | `env`, `mounts` and `customize`; a running pod keeps what it has |
/// | the plan determines the state of the job | [`status`](Self::status), [`outcome`](Self::outcome), [`restart_scope`](Self::restart_scope), [`on_failure`](Self::on_failure), [`is_elastic`](Self::is_elastic), [`retries`](Self::retries), [`tolerance`](Self::tolerance), [`is_retryable`](Self::is_retryable), [`starts_after`](Self::starts_after), [`prints_progress`](Self::prints_progress), [`message`](Self::message) | all but `tolerance` and `is_elastic` |
/// | the status is written | [`encode_status`](Self::encode_status) | it gets the next status |
///
/// A running pod is never changed. If a hook returns something else in a new version of the operator, only new pods get
/// it.
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
    /// The names, numbers and roles of all jobs of the kind.
    const FRAMEWORK: Framework;

    /// Returns the declarations that apply to this job, for a kind whose jobs come from several controllers: [`FRAMEWORK`](Self::FRAMEWORK), or
    /// one of its [variants](Framework::variants). Default: `FRAMEWORK`.
    ///
    /// Called on stored jobs, valid or not. It must not change while the job exists, because the controller and the roles
    /// select its pods.
    fn framework(&self) -> &'static Framework {
        const { &Self::FRAMEWORK }
    }

    /// Returns the replica specs by role. Required.
    ///
    /// Use [`RoleSpecs::map`] for a map by role and [`RoleSpecs::list`] for a list of entries. To set defaults before
    /// the job is validated, use [`RoleSpecs::filled_in`].
    ///
    /// Called on stored jobs, valid or not. Roles are matched with [`Framework::roles`] without regard to case. Unknown
    /// and duplicate roles, and roles with too few or too many replicas, are field errors. A spec without a number of
    /// replicas has one replica.
    fn replica_specs(&self) -> RoleSpecs<'_>;

    /// Returns the run policy. Required.
    ///
    /// Called on stored jobs, valid or not. The defaults of [`RunPolicy`] apply to unset fields. Negative numbers and
    /// unknown words are field errors. A kind may change the user's policy, such as add rules to its
    /// [`failure_policy`](RunPolicy::failure_policy): [`FailureAction`](crate::api::FailureAction) has their effects.
    fn run_policy(&self) -> RunPolicy;

    /// Returns the path of a field of the run policy, such as `backoffLimit`, for messages. Default:
    /// `spec.runPolicy.<field>`.
    fn run_policy_field(&self, field: &str) -> String {
        format!("spec.runPolicy.{field}")
    }

    /// Returns `spec.managedBy`, for a kind that has this field in addition to `runPolicy.managedBy`. Either field
    /// names the controller that runs the job. A job with two different names is not valid. Default: `None`.
    fn managed_by(&self) -> Option<&str> {
        None
    }

    /// Returns the status, if the job has one. Required.
    ///
    /// It must be the status in the API server, unchanged, because the operator stores its state there and writes only
    /// differences.
    fn status(&self) -> Option<&JobStatus>;

    /// Returns the status as JSON for the API server. Default: `status` without changes.
    ///
    /// This is for a kind whose status has other or additional fields. [`status`](Self::status) must read a value that
    /// is equal to `status`, because the operator stores its state there. `topology` is `None` if the job is not valid.
    /// While the job is being deleted (see its metadata), its status may differ and is written once.
    ///
    /// Fields beside those of the shared status need one attribute, and clients that wait for a condition still find it:
    ///
    /// ```
    /// use serde::{Deserialize, Serialize};
    /// use training_job::api::JobStatus;
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct FarmStatus {
    ///     #[serde(default)]
    ///     phase: String,
    ///     #[serde(flatten)]
    ///     job: JobStatus,
    /// }
    ///
    /// let status: FarmStatus = serde_json::from_str(r#"{"ready": "1/2"}"#).unwrap();
    /// assert_eq!((status.job.ready.as_str(), status.phase.as_str()), ("1/2", ""));
    /// ```
    ///
    /// # Errors
    /// If the status cannot be written as JSON.
    fn encode_status(
        &self,
        status: &JobStatus,
        topology: Option<&Topology<'_>>,
    ) -> serde_json::Result<Value> {
        let _ = topology;
        serde_json::to_value(status)
    }

    /// Returns the environment variables of `replica`, in order. They are added to every container of its pod, or only
    /// to [the framework's container](Framework::env_main_container_only). Required; may be empty.
    ///
    /// [`Role::host`] returns the host names of replicas. In the pods of the job they resolve to the pods of the
    /// replicas, even before these exist if each replica has a service of its own. Use [`Topology::domain`] for a name
    /// with dots. `replica` belongs to `topology`. Roles that a valid job must have may be missing, because the length
    /// of variables is checked before [`validate`](Self::validate) is called.
    ///
    /// # Bounds
    /// A job is rejected if the last replica of a role would get a variable of more than
    /// [`MAX_ENV_BYTES`](crate::validate::MAX_ENV_BYTES), because Linux starts no process with it. The hook is called
    /// once for each pod, so compute a list of all replicas with [`Topology::shared_text`]. With such a list in each
    /// pod the size of a job grows with the square of the number of its replicas. With layout
    /// [`Compact`](crate::api::Layout::Compact) the common prefix of the values of a variable is stored once, if it is
    /// long. So put the parts that differ at the end of a value.
    ///
    /// A variable of the user with one of these names is replaced, because the framework forms its cluster by them. All
    /// other variables of the user are kept.
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

    /// Returns the checks of the kind beyond those that all kinds share. The operator makes them, and the API server makes
    /// those with CEL when a job is applied, with the same messages. Default: none.
    ///
    /// Called with jobs that the shared checks found valid, and when the definition is made.
    fn checks() -> Vec<Check<Self>> {
        Vec::new()
    }

    /// Adds the errors of a job that neither the shared checks nor [`checks`](Self::checks) find, because their text depends
    /// on the job, or because CEL cannot say them. Default: nothing.
    ///
    /// Called only if the shared checks found no error, so `topology` is complete. A job with errors gets the condition
    /// Failed and one event with all errors, and no pods, until its spec changes. A job that already runs keeps its
    /// pods. An error has the path of the field, the problem and the remedy. The result is cached until the spec, the labels or the
    /// annotations change, so it must not depend on anything else.
    ///
    /// ```
    /// use training_job::{FieldErrors, Topology};
    ///
    /// fn validate(topology: &Topology<'_>, errors: &mut FieldErrors) {
    ///     if topology.replicas("Worker") % 2 == 1 {
    ///         errors.push("spec.replicaSpecs", "must have an even number of workers", "add or remove one");
    ///     }
    /// }
    /// ```
    fn validate(&self, topology: &Topology<'_>, errors: &mut FieldErrors) {
        let _ = (topology, errors);
    }

    /// Adds warnings about settings that are valid but almost certainly a mistake. Such a job runs all the same.
    /// Default: nothing.
    ///
    /// Only [`render::warnings`](crate::render::warnings()) calls this hook; the operator does not.
    fn warn(&self, topology: &Topology<'_>, warnings: &mut FieldErrors) {
        let _ = (topology, warnings);
    }

    /// Describes in a sentence or two which rules apply to the job, for a kind that is compatible with several older
    /// kinds and selects one by how the job is written. `version` is the API version of the manifest, such as
    /// `v1beta1`. Default: `None`.
    fn describe_compatibility(&self, version: &str) -> Option<String> {
        let _ = version;
        None
    }

    /// Describes in a sentence when the job succeeds, for a kind whose [`outcome`](Self::outcome) depends on more than
    /// the exit codes of its replicas, such as `when the last of its steps has succeeded.` Default: `None`, and `explain`
    /// finds the rule by letting replicas end with 0, as it does for a job with a success policy.
    fn describe_success(&self) -> Option<String> {
        None
    }

    /// Returns the state of the job for these states of its replicas. Default: the job runs if any replica runs, and
    /// has succeeded if all replicas have.
    ///
    /// Failures do not need to be handled here. A failed replica is restarted or fails the job by its restart policy,
    /// and a final failure takes precedence over success.
    ///
    /// Called in each reconcile of a job that has not ended. `replicas` has all replicas of the topology, in the state
    /// of their current attempt. A replica that failed and is to be restarted is
    /// [`Absent`](crate::ReplicaState::Absent). A success is final after the grace period
    /// [`Settings::success_grace_period`](crate::Settings::success_grace_period), in which other replicas may end. For
    /// kinds in which some roles only serve, [`Replicas::decided_by`] is usually enough.
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

    /// Returns the scope that restarts together with a failed replica of `role`, unless the job
    /// ([`RunPolicy::restart_scope`]) or the operator ([`Settings::restart_scope`](crate::Settings::restart_scope))
    /// sets one. Default: only the replica.
    ///
    /// With any scope other than [`Replica`](Scope::Replica), the deletion of a pod and the restart of a
    /// container by the kubelet are failures too, because processes of a collective cannot rejoin it. If the result depends
    /// on the job's status, it applies to failures that are observed from then on.
    ///
    /// ```
    /// use training_job::{Role, Scope, Topology};
    ///
    /// /// No process can rejoin a collective; a monitor is independent of it.
    /// fn restart_scope(_: &Topology<'_>, role: &Role<'_>) -> Scope {
    ///     match role.class() {
    ///         "Monitor" => Scope::Replica,
    ///         _ => Scope::Job,
    ///     }
    /// }
    /// ```
    fn restart_scope(&self, topology: &Topology<'_>, role: &Role<'_>) -> Scope {
        let _ = (topology, role);
        Scope::Replica
    }

    /// Returns the restart after a failure, or `None` to leave it to the restart policies and
    /// [`restart_scope`](Self::restart_scope). Default: `None`.
    ///
    /// Called only if the kind declares it by [`Framework::answers_failures`], and if no rule of the user's failure policy
    /// matches. With a restart as the answer, the restart policy of the role has no effect. A replica whose
    /// [tolerance](Self::tolerance) is `Always` restarts alone, and keeps the limit of that tolerance.
    ///
    /// ```
    /// use std::time::Duration;
    /// use training_job::{Cause, ReplicaFailure, Restart, Scope, Topology};
    ///
    /// /// Exit code 75 requests another turn. The restart of the step and its controller counts against no limit.
    /// fn on_failure(_: &Topology<'_>, failure: &ReplicaFailure<'_>) -> Option<Restart> {
    ///     let again = Restart::of(Scope::Roles(&["Controller"])).uncounted(20).after(Duration::from_secs(30));
    ///     (failure.cause == Cause::Exited(75)).then_some(again)
    /// }
    /// ```
    fn on_failure(&self, topology: &Topology<'_>, failure: &ReplicaFailure<'_>) -> Option<Restart> {
        let _ = (topology, failure);
        None
    }

    /// Returns true if replicas of `role` may come and go while the others run, because the framework takes up the change.
    /// Default: false.
    ///
    /// If the number of replicas of another role changes in a running job, and the environment of any replica depends on
    /// that number, the operator restarts the whole job, because the running processes would wait for each other forever.
    /// The restart counts against no limit. A number that no environment has needs no declaration.
    ///
    /// ```
    /// use training_job::{Role, Topology};
    ///
    /// /// Workers register with the head.
    /// fn is_elastic(_: &Topology<'_>, role: &Role<'_>) -> bool {
    ///     role.class() == "Worker"
    /// }
    /// ```
    fn is_elastic(&self, topology: &Topology<'_>, role: &Role<'_>) -> bool {
        let _ = (topology, role);
        false
    }

    /// Returns the number of restarts of the replicas of `role` after which the next failure fails the job. These restarts
    /// do not count against the limits of the run policy. Default: `None`, the limits of the run policy.
    ///
    /// The limit has no effect on a failure that restarts the whole job, by the scope of the role or by a rule of the
    /// failure policy: such restarts count against the limits of the run policy. A restart by a rule with the action
    /// `Ignore` counts against no limit.
    ///
    /// ```
    /// use training_job::Role;
    ///
    /// fn retries(submitter_retries: Option<u32>, role: &Role<'_>) -> Option<u32> {
    ///     match role.class() {
    ///         "Submitter" => Some(submitter_retries.unwrap_or(3)),
    ///         _ => None,
    ///     }
    /// }
    /// ```
    fn retries(&self, role: &Role<'_>) -> Option<u32> {
        let _ = role;
        None
    }

    /// Returns the tolerance of the job for a replica of `role` whose failure is final, which means that its restart
    /// policy does not restart it. If the job continues, [`outcome`](Self::outcome) sees the replica as failed.
    /// Default: the job fails.
    ///
    /// The result must depend only on the role.
    ///
    /// ```
    /// use training_job::{FailureTolerance, Role};
    ///
    /// fn tolerance(role: &Role<'_>) -> FailureTolerance {
    ///     match role.class() {
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

    /// Returns true if a replica of `role` with restart policy `ExitCode` that ended with `exit_code` (1–255) is
    /// restarted. `reason` is the kubelet's reason for the end, such as `Error` or `OOMKilled`. Default: true from 128,
    /// which are the exit codes after signals.
    ///
    /// Not called for pods that failed without an exit code, such as evicted pods: they are restarted. Not called either for
    /// a container that never ran: it is final if its command, the permission of the command or its working directory is at
    /// fault, and is retried otherwise.
    fn is_retryable(&self, role: &Role<'_>, exit_code: i32, reason: &str) -> bool {
        let _ = (role, reason);
        exit_code >= 128
    }

    /// Returns the classes whose replicas must all run or have ended before a pod of `role` is created, at the start
    /// and after a restart of all of them; be ready or have succeeded, if the role's definition says so
    /// ([`StartCondition`]). A role must not wait for itself, also not through other roles. Default: those
    /// that [`RoleDefinition::starts_after`] declares; a kind overrides the hook if the order depends on the job.
    ///
    /// ```
    /// use training_job::{Role, Topology};
    ///
    /// /// The launcher starts its processes in the workers' pods.
    /// fn starts_after(_: &Topology<'_>, role: &Role<'_>) -> &'static [&'static str] {
    ///     match role.class() {
    ///         "Launcher" => &["Worker"],
    ///         _ => &[],
    ///     }
    /// }
    /// ```
    fn starts_after(&self, topology: &Topology<'_>, role: &Role<'_>) -> &'static [&'static str] {
        let _ = topology;
        role.definition.starts_after
    }

    /// Returns the names of the pods and services of a role's replicas. Default: `<job>-<slug>-<index>`. The names of
    /// `role` itself are these defaults.
    ///
    /// Names must be DNS-1035 labels, and must be unique within the job. They must not change while the job exists,
    /// because the operator finds a replica's pod by its name. `<job>-hosts` is reserved for the service of a compact
    /// job. A kind with other names than the default declares this with [`Framework::names_replicas`].
    ///
    /// ```
    /// use training_job::{ReplicaNames, Role};
    ///
    /// fn replica_names(job: &str, role: &Role<'_>) -> ReplicaNames {
    ///     match role.class() {
    ///         // `primes-launcher`, without an index: there is only one.
    ///         "Launcher" => ReplicaNames::Single(format!("{job}-launcher")),
    ///         _ => ReplicaNames::Indexed(format!("{job}-{}-x7f2", role.slug)),
    ///     }
    /// }
    /// ```
    fn replica_names(&self, role: &Role<'_>) -> ReplicaNames {
        role.names.clone()
    }

    /// Returns additional labels of a replica's pod and service. They cannot replace the labels that every kind has
    /// ([`labels`](crate::api::labels)), and services do not select by them. Default: none.
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

    /// Returns the label `training.kubeflow.org/replica-index` of the first replica of `role`, for clients that count the
    /// replicas of several roles in one row. Names count from 0 all the same. Default: 0.
    fn first_index(&self, role: &Role<'_>) -> u32 {
        let _ = role;
        0
    }

    /// Returns true if the replica's pod gets the label `training.kubeflow.org/job-role: master`. The Python SDK shows
    /// the logs of these pods as the job's. Default: false.
    fn is_master(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> bool {
        let _ = (topology, replica);
        false
    }

    /// Returns true if this replica prints the progress of the job, so that its output is read if the run policy requests it
    /// ([`RunPolicy::progress`]). Default: [`is_master`](Self::is_master). If no replica of a job does, that is the first
    /// replica of the last role with running pods.
    ///
    /// ```
    /// use training_job::Replica;
    ///
    /// /// The scheduler prints nothing.
    /// fn prints_progress(replica: &Replica<'_>) -> bool {
    ///     replica.role.class() == "Worker" && replica.index == 0
    /// }
    /// ```
    fn prints_progress(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> bool {
        self.is_master(topology, replica)
    }

    /// Returns true if the other replicas connect to this replica, by its name, to form the cluster. Default: false.
    ///
    /// If the job or its kind requests a stable address ([`Framework::stable_address`]), the service of this replica
    /// has a cluster IP. The name then leads to the new pod immediately after a restart, while DNS caches keep the
    /// address of a pod for half a minute. At most one replica for each cluster of a job may be dialed.
    ///
    /// ```
    /// use training_job::Replica;
    ///
    /// fn is_dialed(replica: &Replica<'_>) -> bool {
    ///     replica.role.class() == "Head"
    /// }
    /// ```
    fn is_dialed(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> bool {
        let _ = (topology, replica);
        false
    }

    /// Returns the objects that the pods of a role mount, beside those that each job of the kind mounts by
    /// [`ObjectDefinition::mounted_at`]. Default: none.
    ///
    /// They may be objects of the job, or a user's, such as a claim that the spec names. A kubelet starts no container of a
    /// pod before they exist. Only a claim can be written to. A container that mounts something else at that path keeps it.
    /// Called for each new pod, and when a job is checked.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::PersistentVolumeClaim;
    /// use training_job::{Mount, ObjectKind, Role, Topology};
    ///
    /// /// The claim of `spec.replayClaim`, if the job has one.
    /// fn mounts(claim: Option<&str>, role: &Role<'_>) -> Vec<Mount> {
    ///     let claim = claim.filter(|_| role.class() == "Replay");
    ///     let mount = |name| ObjectKind::of::<PersistentVolumeClaim>().mount(name, "/replay");
    ///     claim.map(mount).into_iter().collect()
    /// }
    /// ```
    fn mounts(&self, topology: &Topology<'_>, role: &Role<'_>) -> Vec<Mount> {
        let _ = (topology, role);
        Vec::new()
    }

    /// Changes the spec of a replica's pod after everything else has been rendered. Default: nothing.
    ///
    /// The pod's name, labels and owner cannot be changed. The result must be valid for an API server, because it is
    /// not checked. Called once for each new pod, and never for existing pods.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::PodSpec;
    /// use training_job::{Replica, Topology};
    ///
    /// fn customize(topology: &Topology<'_>, replica: &Replica<'_>, pod: &mut PodSpec) {
    ///     if replica.role.class() == "Worker" {
    ///         pod.termination_grace_period_seconds.get_or_insert(60);
    ///     }
    /// }
    /// ```
    fn customize(&self, topology: &Topology<'_>, replica: &Replica<'_>, pod: &mut PodSpec) {
        let _ = (topology, replica, pod);
    }

    /// Returns the index of the framework's container among the containers of the role's template. Default: the container
    /// that [`RoleDefinition::container`] or else [`Framework::main_container`] names. For a kind of
    /// [`Framework::first_container`], it is the first container of the roles without a [`RoleDefinition::container`].
    /// Neither name may be empty.
    ///
    /// That container gets the framework's environment and port, and its end is the end of the replica.
    ///
    /// ```
    /// use training_job::Role;
    ///
    /// /// The container that the job names, or the first one if it names none.
    /// fn framework_container(named: Option<&str>, role: &Role<'_>) -> Option<usize> {
    ///     let containers = role.containers();
    ///     match named {
    ///         Some(name) => containers.iter().position(|container| container.name == name),
    ///         None => (!containers.is_empty()).then_some(0),
    ///     }
    /// }
    /// ```
    fn framework_container(&self, role: &Role<'_>) -> Option<usize> {
        Self::FRAMEWORK.container_of(role.definition, role.containers())
    }

    /// Returns the objects of the job in addition to the pods and services of its replicas, in the order of their
    /// creation. [`Framework::objects`] declares their kinds. Default: none.
    ///
    /// The operator creates these objects before the job's services and pods, with the job as their owner. A deleted
    /// object is created again. An object whose fields differ from those returned here is patched, and keeps its other
    /// fields (`null` removes a field). An object that is no longer returned is deleted. An existing object of the same
    /// name that the job does not own is never changed: an event reports it, and the job waits.
    ///
    /// Pods and services are allowed too. They are not counted, only their kubelet restarts them, and they are created
    /// again if they are gone or have ended, but not patched. Their names must not depend on `replicas`, and must
    /// differ from those of the replicas.
    ///
    /// [`ObjectDefinition`] declares the lifetime of objects. Objects that a suspended or finished job keeps are still
    /// patched, but not created again. `replicas` has the states that the plan observed. If the job is rendered without
    /// a cluster, all replicas are [`Pending`](crate::ReplicaState::Pending).
    ///
    /// The names `<job>-env-` with 16 hexadecimal digits are reserved for ConfigMaps of the library, which hold the
    /// common part of the environments of a [compact](crate::api::Layout::Compact) job.
    ///
    /// The operator needs the permissions to get, list, watch, create, patch and delete the kinds, and must itself have
    /// every permission that a Role among the objects grants.
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

    /// Returns the message for a milestone, in conditions and events. Default: the message of the Go operator
    /// ([`Milestone::describe`]).
    ///
    /// Called when a plan reaches the milestone. A condition keeps its first message. The event of a failed job adds
    /// the pod and the cause in parentheses.
    fn message(&self, milestone: &Milestone<'_>) -> String {
        milestone.describe(&Self::kind(&()), &self.meta().name.clone().unwrap_or_default())
    }

    /// Returns the fields that the spec of a first job needs beside replicas and templates, as JSON, for a kind with
    /// required fields of its own. Default: none.
    ///
    /// The commands `new` and `local run --kind` complete it: the roles that a job must have, and those that the example
    /// names, get an image and the command. Of roles that users name, the example has the entries. Fields of the example
    /// are kept, except the number of workers if the user gives one. The workers are the role `Worker`, or else the last
    /// role that may have several replicas, if possible one that the job must have or the example names. Not called by the
    /// operator.
    ///
    /// ```
    /// use serde_json::{Value, json};
    ///
    /// fn example() -> Value {
    ///     json!({"dataset": "s3://bucket/data", "partitions": [{"name": "cpu", "nodes": 2}]})
    /// }
    /// ```
    fn example() -> Value {
        Value::Null
    }

    /// Returns the custom resource definition without rules. [`admission::definition`](crate::admission::definition)
    /// adds the rules to install it with. Default: the definition of `#[derive(CustomResource)]`,
    /// [tidied](crate::api::schema::tidy_definition), with the field of the replica specs required.
    fn definition() -> CustomResourceDefinition {
        let field = Some(Self::FRAMEWORK.roles_field).filter(|field| !field.is_empty());
        tidy_definition(Self::crd(), field.as_slice())
    }
}
