//! The properties that all jobs of a kind share: names, numbers and roles.

use crate::api::RestartPolicy;
use crate::api::labels::{Keys, OPERATOR_NAME};

use k8s_openapi::api::core::v1::Container;

use super::objects::{ObjectDefinition, ObjectKind};
use super::role_definition::{RoleDefinition, RoleSource, StartCondition};

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
    /// The source of events, if it differs from [`controller`](Self::controller).
    pub event_source: Option<&'static str>,
    /// The version in the owner references of the job's objects, if it differs from the stored version of the kind.
    pub version: Option<&'static str>,
    /// The declarations of other jobs of the kind: [`TrainingJob::framework`](super::TrainingJob::framework).
    pub variants: &'static [Framework],
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
            event_source: None,
            version: None,
            variants: &[],
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

    /// Sets the [`controller`](Self::controller), and another name as the source of events.
    #[must_use]
    pub const fn controller(mut self, controller: &'static str, event_source: &'static str) -> Self {
        self.controller = controller;
        self.event_source = Some(event_source);
        self
    }

    /// Sets the version in owner references, which the definition of the kind must serve. Default: the stored version.
    #[must_use]
    pub const fn version(mut self, version: &'static str) -> Self {
        self.version = Some(version);
        self
    }

    /// Declares the values that [`framework`](super::TrainingJob::framework) returns for some jobs of the kind. They may differ in
    /// their controller, version, restart policy and objects, and in when its roles start. The settings of the kind are those of
    /// this framework.
    ///
    /// An operator that may not list the objects that only a variant has runs the other jobs of the kind.
    #[must_use]
    pub const fn variants(mut self, variants: &'static [Framework]) -> Self {
        self.variants = variants;
        self
    }

    /// Returns the kinds of objects that jobs of any variant have in addition to pods and services, without duplicates.
    pub fn all_objects(&self) -> Vec<ObjectKind> {
        let of_variants = self.variants.iter().flat_map(|variant| variant.objects);
        let mut kinds: Vec<ObjectKind> = Vec::new();
        for definition in self.objects.iter().chain(of_variants) {
            if !kinds.contains(&definition.kind) {
                kinds.push(definition.kind);
            }
        }
        kinds
    }

    /// Returns the names of the controllers of all jobs of the kind.
    pub fn controllers(&self) -> impl Iterator<Item = &'static str> {
        let variants = self.variants.iter().map(|variant| variant.controller);
        std::iter::once(self.controller).chain(variants)
    }

    /// Returns the label selector of the objects of the job `name`, whatever its variant.
    pub fn selector_of(&self, name: &str) -> String {
        let controllers: Vec<_> = self.controllers().collect();
        let job_name = self.keys().job_name();
        format!("{OPERATOR_NAME} in ({}),{job_name}={name}", controllers.join(","))
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
    /// has the number of ready replicas. Variants do not count.
    pub fn waits_for_readiness(&self) -> bool {
        let is_ready = |role: &RoleDefinition| role.start_condition == StartCondition::Ready;
        self.roles.iter().any(is_ready)
    }

    /// Returns true if the kind declares objects of `kind` for which `holds` returns true.
    pub(crate) fn declares(&self, kind: ObjectKind, holds: fn(&ObjectDefinition) -> bool) -> bool {
        self.objects.iter().any(|d| d.kind == kind && holds(d))
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
