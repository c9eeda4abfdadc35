//! The properties that all jobs of a kind share: names, numbers and roles.

use crate::api::labels::Keys;
use crate::api::{MAX_REPLICAS, RestartPolicy};

use k8s_openapi::api::core::v1::Container;

use super::objects::ObjectDefinition;

/// The names and numbers of a kind of training job.
///
/// ```
/// use training_job::api::RestartPolicy;
/// use training_job::{Framework, RoleDefinition};
///
/// const FARM: Framework = Framework::new("farm", "farmjob-controller")
///     .port("farm-port", 7000)
///     .restart_policy(&RestartPolicy::ExitCode)
///     .roles("replicaSpecs", &[
///         RoleDefinition::new("Head").exactly(1),
///         RoleDefinition::new("Worker"),
///     ]);
/// assert_eq!((FARM.main_container, FARM.port), ("farm", 7000));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Framework {
    /// The name of the framework in metrics, such as `tensorflow`.
    pub name: &'static str,
    /// Other names of the framework, such as the command or the package that users know, for command lines. Default:
    /// none.
    pub aliases: &'static [&'static str],
    /// The name of the controller: the value of label [`OPERATOR_NAME`](crate::api::labels::OPERATOR_NAME) and the source
    /// of events.
    /// It must be unique for each kind.
    pub controller: &'static str,
    /// The prefix of the keys of labels and annotations that users write and select by, a DNS name.
    pub key_prefix: &'static str,
    /// The category of the kind, with which `kubectl get` lists jobs of several kinds.
    pub category: &'static str,
    /// The container that every replica must have. The replica's service exposes its ports. If empty, the first
    /// container, whatever its name.
    pub main_container: &'static str,
    /// True if only that container gets the environment; otherwise all containers do. Init containers never do.
    pub env_main_container_only: bool,
    /// The name of the port that is added to that container if it has no port of this name. If empty, no port is
    /// added.
    pub port_name: &'static str,
    /// The number of that port.
    pub port: i32,
    /// The default restart policy of a replica spec.
    pub restart_policy: &'static RestartPolicy,
    /// The field below `spec` that holds the replica specs.
    pub roles_field: &'static str,
    /// The field of an entry that names its role, if the replica specs are a list.
    pub role_key: Option<&'static str>,
    /// The roles in the order in which their pods are created.
    pub roles: &'static [RoleDefinition],
    /// The role whose number of replicas `kubectl scale` and autoscalers change, if any.
    pub scaled_role: Option<&'static str>,
    /// True if the hook `on_failure` answers the failures of replicas.
    pub answers_failures: bool,
    /// True if a template may omit images, because the kind's replica specs fill them in.
    pub fills_in_images: bool,
    /// True if an entry may omit its template, because the kind's replica specs fill it in.
    pub fills_in_templates: bool,
    /// True if names of pods and services follow another pattern than `<job>-<role>-<index>`.
    pub names_replicas: bool,
    /// True if the replica that the others dial has a service with a stable address by default. A job can override
    /// it.
    pub stable_address: bool,
    /// The kinds of objects that jobs have in addition to pods and services.
    pub objects: &'static [ObjectDefinition],
    /// The fields of the spec, in addition to those of the run policy, that an annotation of the job can set.
    pub annotated_fields: &'static [&'static str],
    /// The operator's settings that this kind reads. Each is a flag of the operator.
    pub settings: &'static [SettingDefinition],
}

/// A setting of the operator that a kind reads with [`Settings::get`](super::Settings::get).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingDefinition {
    /// The name, such as `farm-monitor-image`.
    pub name: &'static str,
    /// The value if the setting is not set.
    pub default: &'static str,
    /// The purpose of the setting in one sentence.
    pub help: &'static str,
}

impl SettingDefinition {
    /// Creates a setting with this name and default. `help` describes its purpose in one sentence.
    pub const fn new(name: &'static str, default: &'static str, help: &'static str) -> Self {
        Self { name, default, help }
    }
}

impl Framework {
    /// Creates a framework with this name and [`controller`](Self::controller). Its container has the same name, its
    /// port is `port` 80, and its restart policy is `Never`.
    pub const fn new(name: &'static str, controller: &'static str) -> Self {
        Self {
            name,
            aliases: &[],
            controller,
            key_prefix: "training.kubeflow.org",
            category: "training",
            main_container: name,
            env_main_container_only: false,
            port_name: "port",
            port: 80,
            restart_policy: &RestartPolicy::Never,
            roles_field: "",
            role_key: None,
            roles: &[],
            scaled_role: None,
            answers_failures: false,
            fills_in_images: false,
            fills_in_templates: false,
            names_replicas: false,
            stable_address: false,
            objects: &[],
            annotated_fields: &[],
            settings: &[],
        }
    }

    /// Sets the prefix of the keys of [labels and annotations](Keys), such as `farm.example.com`. Keys that only operators
    /// read (`operator-name`, `restart-attempt`, `capacity-freed-at`) keep theirs, because one watch serves all kinds.
    /// Default: `training.kubeflow.org`.
    #[must_use]
    pub const fn key_prefix(mut self, prefix: &'static str) -> Self {
        self.key_prefix = prefix;
        self
    }

    /// Returns the keys of labels and annotations.
    pub fn keys(&self) -> Keys {
        Keys::new(self.key_prefix)
    }

    /// Sets the [`category`](Self::category) of the kind. Default: `training`.
    #[must_use]
    pub const fn category(mut self, category: &'static str) -> Self {
        self.category = category;
        self
    }

    /// Sets the [`main_container`](Self::main_container) that every replica must have.
    #[must_use]
    pub const fn main_container(mut self, name: &'static str) -> Self {
        self.main_container = name;
        self
    }

    /// Adds other names of the framework, by which command lines accept its kind.
    #[must_use]
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Makes the first container of each replica the framework's, whatever its name.
    #[must_use]
    pub const fn first_container(self) -> Self {
        self.main_container("")
    }

    /// Gives the environment only to the framework's container, because a sidecar that sees these variables could
    /// register as the replica.
    #[must_use]
    pub const fn env_main_container_only(mut self) -> Self {
        self.env_main_container_only = true;
        self
    }

    /// Sets the name (at most 15 characters) and number of the framework's port.
    #[must_use]
    pub const fn port(mut self, name: &'static str, number: i32) -> Self {
        self.port_name = name;
        self.port = number;
        self
    }

    /// Adds no port to the framework's container.
    #[must_use]
    pub const fn no_port(self) -> Self {
        self.port("", 0)
    }

    /// Sets the default restart policy of a replica spec.
    #[must_use]
    pub const fn restart_policy(mut self, policy: &'static RestartPolicy) -> Self {
        self.restart_policy = policy;
        self
    }

    /// Sets the field below `spec` that holds the replica specs as a map by role, and the roles in the order in which
    /// their pods are created.
    #[must_use]
    pub const fn roles(mut self, field: &'static str, roles: &'static [RoleDefinition]) -> Self {
        self.roles_field = field;
        self.roles = roles;
        self
    }

    /// Like [`roles`](Self::roles) for a list of entries. `key` is the field of an entry that names its role.
    #[must_use]
    pub const fn roles_in_list(
        self,
        field: &'static str,
        key: &'static str,
        roles: &'static [RoleDefinition],
    ) -> Self {
        let mut framework = self.roles(field, roles);
        framework.role_key = Some(key);
        framework
    }

    /// Lets `kubectl scale` and autoscalers change the number of replicas of this role. The definition gets the scale
    /// subresource, and a job's status gets the label selector of each role's pods. The replica specs must be a map.
    #[must_use]
    pub const fn scales(mut self, role: &'static str) -> Self {
        self.scaled_role = Some(role);
        self
    }

    /// Declares that [`on_failure`](super::TrainingJob::on_failure) answers the failures of replicas. Kubelets then restart
    /// no containers, so that the operator sees each failure, and the restart policy `Always` acts as `OnFailure`.
    #[must_use]
    pub const fn answers_failures(mut self) -> Self {
        self.answers_failures = true;
        self
    }

    /// Lets templates omit images, because [`replica_specs`](super::TrainingJob::replica_specs) fills them in. The
    /// API server then does not require them; validation checks the completed template.
    #[must_use]
    pub const fn fills_in_images(mut self) -> Self {
        self.fills_in_images = true;
        self
    }

    /// Lets roles omit their template, because [`replica_specs`](super::TrainingJob::replica_specs) fills it in. The
    /// API server then does not require it; validation checks the completed entry.
    #[must_use]
    pub const fn fills_in_templates(mut self) -> Self {
        self.fills_in_templates = true;
        self
    }

    /// Lets annotations of a job set these fields of its spec, in addition to
    /// [those of the run policy](crate::api::RunPolicy::ANNOTATED_FIELDS). For example, the annotation
    /// [`training.kubeflow.org/launcher-policy`](Keys::annotation_of) has the value of
    /// `launcherPolicy`. This is for clients that use the types of another operator and drop these fields.
    #[must_use]
    pub const fn annotated_fields(mut self, fields: &'static [&'static str]) -> Self {
        self.annotated_fields = fields;
        self
    }

    /// Declares that [`replica_names`](super::TrainingJob::replica_names) returns other names than
    /// `<job>-<role>-<index>`. The API server then does not check their length, but validation does.
    #[must_use]
    pub const fn names_replicas(mut self) -> Self {
        self.names_replicas = true;
        self
    }

    /// Gives the replica that the others dial ([`is_dialed`](super::TrainingJob::is_dialed)) a service whose address
    /// does not change when the replica restarts, unless the job's `runPolicy.stableAddress` is false. Through the
    /// service, other replicas can only reach the ports that the container declares, so this is for kinds whose
    /// processes use no other ports.
    #[must_use]
    pub const fn stable_address(mut self) -> Self {
        self.stable_address = true;
        self
    }

    /// Sets the kinds of objects that jobs have in addition to pods and services.
    /// [`objects`](super::TrainingJob::objects) creates them.
    #[must_use]
    pub const fn objects(mut self, objects: &'static [ObjectDefinition]) -> Self {
        self.objects = objects;
        self
    }

    /// Sets the operator's settings that this kind reads. A program that adds the kind by `process::Program::kinds`
    /// has a flag for each.
    #[must_use]
    pub const fn settings(mut self, settings: &'static [SettingDefinition]) -> Self {
        self.settings = settings;
        self
    }

    /// Returns the path of the replica specs in a job for errors: `spec.replicaSpecs`, or `spec` if each role has a
    /// field of its own.
    pub fn roles_path(&self) -> String {
        match self.roles_field {
            "" => "spec".to_owned(),
            field => format!("spec.{field}"),
        }
    }

    /// Sets the roles, each with a field of its own: [`RoleDefinition::in_field`], [`RoleDefinition::in_map`]
    /// or [`RoleDefinition::in_list`]. Pods are created in their order.
    #[must_use]
    pub const fn roles_in_fields(self, roles: &'static [RoleDefinition]) -> Self {
        self.roles("", roles)
    }

    /// Returns the name of the framework's container in replicas of `role`; empty for the first container.
    pub(crate) fn container_name(&self, role: &RoleDefinition) -> &'static str {
        role.container.unwrap_or(self.main_container)
    }

    /// Returns the names and numbers of the ports of that container.
    pub(crate) fn ports_of(&self, role: &RoleDefinition) -> Vec<(&'static str, i32)> {
        match role.ports {
            Some(ports) => ports.to_vec(),
            None if self.port_name.is_empty() => Vec::new(),
            None => vec![(self.port_name, self.port)],
        }
    }

    /// Returns the index of the framework's container among the containers of a replica of `role`.
    pub(crate) fn container_of(&self, role: &RoleDefinition, containers: &[Container]) -> Option<usize> {
        match self.container_name(role) {
            "" => (!containers.is_empty()).then_some(0),
            name => containers.iter().position(|container| container.name == name),
        }
    }

    /// Returns true if a role waits until others are ready ([`RoleDefinition::when_ready`]). The status of the jobs then
    /// has the number of ready replicas.
    pub fn waits_for_readiness(&self) -> bool {
        let is_ready = |role: &RoleDefinition| role.start_condition == StartCondition::Ready;
        self.roles.iter().any(is_ready)
    }

    /// Returns true if any role has services, which have the names of their replicas.
    pub(crate) fn has_services(&self) -> bool {
        self.roles.iter().any(|role| role.has_service)
    }

    /// Returns true if any role must have replicas in every job.
    pub(crate) fn needs_some_role(&self) -> bool {
        let open = |role: &RoleDefinition| role.source.is_open();
        self.roles.iter().any(|role| role.min > 0 && !open(role))
    }

    /// Returns the names of the roles that have an entry in the common field.
    pub(crate) fn role_names(&self) -> Vec<&'static str> {
        self.entries().map(|role| role.name).collect()
    }

    /// Returns the names of the roles whose names the users do not choose.
    pub(crate) fn fixed_role_names(&self) -> Vec<&'static str> {
        let fixed = self.roles.iter().filter(|role| !role.source.is_open());
        fixed.map(|role| role.name).collect()
    }

    /// Returns the roles that have an entry in the common field.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &'static RoleDefinition> + use<> {
        self.roles.iter().filter(|role| role.source == RoleSource::Entry)
    }
}

/// A role that replicas of a kind of job may have, or a class of roles whose names the users choose.
///
/// A bound is declared once. Validation and the API server reject a job that exceeds it, with the same message.
///
/// ```
/// use training_job::RoleDefinition;
///
/// // `spec.head` is the replica spec of the only head.
/// const HEAD: RoleDefinition = RoleDefinition::new("Head").in_field("head").exactly(1);
/// // Each item of `spec.workerGroups` is a role of its own, such as `gpu-large`, with the class Worker.
/// const WORKER: RoleDefinition = RoleDefinition::new("Worker").in_list("workerGroups", "groupName");
/// assert_eq!((HEAD.min, HEAD.max), (1, 1));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoleDefinition {
    /// The name as in the replica specs; the name of the class if users name the roles.
    pub name: &'static str,
    /// The place of its replica specs in a job.
    pub source: RoleSource,
    /// The field of a replica spec that has the number of replicas.
    pub replicas_field: &'static str,
    /// The field below `spec` with the pod template that all roles of the class share, if they do.
    pub template_from: Option<&'static str>,
    /// Minimum number of replicas; 0 if the role is optional.
    pub min: u32,
    /// Maximum number of replicas, at most [`MAX_REPLICAS`].
    pub max: u32,
    /// The framework's container in its replicas; [`Framework::main_container`] if unset.
    pub container: Option<&'static str>,
    /// The names and numbers of the ports that are added to that container; the framework's port if unset.
    pub ports: Option<&'static [(&'static str, i32)]>,
    /// True if its replicas have services, whose names the other replicas use.
    pub has_service: bool,
    /// The end of the name of its only replica's service; if unset, services are named as the pods.
    pub service: Option<&'static str>,
    /// The roles whose replicas must all run or have succeeded before its pods are created.
    pub starts_after: &'static [&'static str],
    /// The state that the replicas of [`starts_after`](Self::starts_after) must have reached.
    pub start_condition: StartCondition,
    /// True if each role of this class also waits until the role before it in the job has succeeded.
    pub in_order: bool,
    /// True if its replicas have no end of their own, so that each end is a failure that restarts the replica.
    pub always_replaced: bool,
    /// True if its processes reconnect to the others after the kubelet has restarted their container.
    pub survives_container_restart: bool,
    /// True if a gang scheduler places its pods together with those of other roles.
    pub in_gang: bool,
}

impl RoleDefinition {
    /// Creates an optional role with up to [`MAX_REPLICAS`] replicas.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            source: RoleSource::Entry,
            replicas_field: "replicas",
            template_from: None,
            min: 0,
            max: MAX_REPLICAS.unsigned_abs(),
            container: None,
            ports: None,
            has_service: true,
            service: None,
            starts_after: &[],
            start_condition: StartCondition::Running,
            in_order: false,
            always_replaced: false,
            survives_container_restart: false,
            in_gang: true,
        }
    }

    /// Reads the role's replica spec from the field `spec.<field>`.
    #[must_use]
    pub const fn in_field(mut self, field: &'static str) -> Self {
        self.source = RoleSource::Field(field);
        self
    }

    /// Makes this a class of roles: the map `spec.<field>` has their replica specs by name. Names must be usable in
    /// names of services. The bounds apply to each role.
    #[must_use]
    pub const fn in_map(mut self, field: &'static str) -> Self {
        self.source = RoleSource::Map(field);
        self
    }

    /// Makes this a class of roles: each item of the list `spec.<field>` is the replica spec of the role that its field
    /// `key` names. Names must be usable in names of services. The bounds apply to each role.
    #[must_use]
    pub const fn in_list(mut self, field: &'static str, key: &'static str) -> Self {
        self.source = RoleSource::List { field, key };
        self
    }

    /// Reads the number of replicas from the field `field` of the role's spec, such as `nodes`, in place of `replicas`.
    /// Errors, bounds and `kubectl training scale` use it, and the API server knows no `replicas` there. For roles with a
    /// field of their own; [`RoleSpecs::numbered`](super::RoleSpecs::numbered) passes the number on.
    #[must_use]
    pub const fn replicas_field(mut self, field: &'static str) -> Self {
        self.replicas_field = field;
        self
    }

    /// Gives all roles of the class the pod template in `spec.<field>`, so that neither a job nor the definition has it
    /// twice. Errors of the template name that field. For roles of a list or map;
    /// [`RoleSpecs::templated`](super::RoleSpecs::templated) passes the template on.
    #[must_use]
    pub const fn template_from(mut self, field: &'static str) -> Self {
        self.template_from = Some(field);
        self
    }

    /// Sets the name of the framework's container in the role's replicas.
    #[must_use]
    pub const fn container(mut self, name: &'static str) -> Self {
        self.container = Some(name);
        self
    }

    /// Sets the names (at most 15 characters) and numbers of the ports that the framework's container of the role has.
    /// The first is [`Role::port`](super::Role::port). Ports of these names in a template are kept.
    #[must_use]
    pub const fn ports(mut self, ports: &'static [(&'static str, i32)]) -> Self {
        self.ports = Some(ports);
        self
    }

    /// Requires at least this many replicas of the role.
    #[must_use]
    pub const fn at_least(mut self, replicas: u32) -> Self {
        self.min = replicas;
        self
    }

    /// Allows at most this many replicas of the role.
    #[must_use]
    pub const fn at_most(mut self, replicas: u32) -> Self {
        self.max = replicas;
        self
    }

    /// Requires exactly this many replicas of the role.
    #[must_use]
    pub const fn exactly(self, replicas: u32) -> Self {
        self.at_least(replicas).at_most(replicas)
    }

    /// Creates the pods of the role when all replicas of these roles run or have succeeded, at the start and after a
    /// restart of all of them.
    #[must_use]
    pub const fn starts_after(mut self, roles: &'static [&'static str]) -> Self {
        self.starts_after = roles;
        self
    }

    /// Replaces the pod of a replica whenever its container ends, whatever the exit code and the restart policy. Use it
    /// for servers, which have no work of their own to complete. Restarts count against the limits of the job.
    #[must_use]
    pub const fn always_replaced(mut self) -> Self {
        self.always_replaced = true;
        self
    }

    /// Makes the role wait until the replicas that start first are ready, or have succeeded: the readiness probes of
    /// their containers succeed. Without it the role waits until they run.
    #[must_use]
    pub const fn when_ready(mut self) -> Self {
        self.start_condition = StartCondition::Ready;
        self
    }

    /// Makes the role wait until all replicas that start first have succeeded. A role that others wait for in this way
    /// succeeds once: its success outlasts restarts and suspensions of the job, and its pods are not created again.
    ///
    /// ```
    /// use training_job::{RoleDefinition, StartCondition};
    ///
    /// const TRAIN: RoleDefinition = RoleDefinition::new("Train").starts_after(&["Prepare"]).when_succeeded();
    /// assert_eq!(TRAIN.start_condition, StartCondition::Succeeded);
    /// ```
    #[must_use]
    pub const fn when_succeeded(mut self) -> Self {
        self.start_condition = StartCondition::Succeeded;
        self
    }

    /// Runs the roles of this class one after the other, in the order of their [list](Self::in_list): each starts when the
    /// one before it has succeeded. The success of a role outlasts restarts and suspensions of the job.
    #[must_use]
    pub const fn in_order(mut self) -> Self {
        self.in_order = true;
        self
    }

    /// Names the service of the role's only replica `<job>-<name>`, which is then the replica's
    /// [host name](super::Replica::host). Without it the service is named as the pod. For roles of at most one replica.
    #[must_use]
    pub const fn service(mut self, name: &'static str) -> Self {
        self.service = Some(name);
        self
    }

    /// Creates no services for the replicas, because no process connects to them.
    #[must_use]
    pub const fn without_services(mut self) -> Self {
        self.has_service = false;
        self
    }

    /// Declares that the processes reconnect to the others after the kubelet has restarted their container. Such a
    /// restart is not a failure, even if replicas of the role restart together with others. It counts against the
    /// backoff limit.
    #[must_use]
    pub const fn survives_container_restart(mut self) -> Self {
        self.survives_container_restart = true;
        self
    }

    /// Leaves the pods of the role to the scheduler of the cluster, such as those of a database that others use when they
    /// come. The PodGroup of the job counts and requests only the pods of the other roles.
    #[must_use]
    pub const fn outside_gang(mut self) -> Self {
        self.in_gang = false;
        self
    }

    /// Returns the name in lower case, as in names of pods and values of labels.
    pub fn slug(&self) -> String {
        self.name.to_lowercase()
    }
}

/// The state that replicas must have reached before the role that waits for them starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartCondition {
    /// They run, or have ended.
    Running,
    /// They are ready, or have ended.
    Ready,
    /// They have succeeded.
    Succeeded,
}

/// The place of a role's replica specs in a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RoleSource {
    /// The entry of this role in [`Framework::roles_field`].
    Entry,
    /// The field of this name below `spec`.
    Field(&'static str),
    /// The map in the field of this name below `spec`. Its keys are the names of the roles.
    Map(&'static str),
    /// A list. The roles have names of their own.
    List {
        /// The field below `spec`.
        field: &'static str,
        /// The field of an item that names its role.
        key: &'static str,
    },
}

impl RoleSource {
    /// Returns the field below `spec`; `None` for the field that all entries share.
    pub fn field(self) -> Option<&'static str> {
        match self {
            Self::Entry => None,
            Self::Field(field) | Self::Map(field) | Self::List { field, .. } => Some(field),
        }
    }

    /// Returns true if users name the roles.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Map(_) | Self::List { .. })
    }
}
