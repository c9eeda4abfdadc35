//! What is the same for all jobs of a kind: its names, numbers and roles.

use crate::api::{MAX_REPLICAS, RestartPolicy};

use k8s_openapi::api::core::v1::Container;

use super::objects::ObjectDefinition;

/// Names and numbers of a kind of training job.
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
/// assert_eq!((FARM.container, FARM.port), ("farm", 7000));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Framework {
    /// The framework in metrics, such as `tensorflow`.
    pub name: &'static str,
    /// The controller: the value of label `training.kubeflow.org/operator-name` and the source of events. Each kind
    /// needs its own.
    pub controller: &'static str,
    /// The container that every replica must have, and whose ports the replica's service exposes. If empty, the first one,
    /// whatever its name.
    pub container: &'static str,
    /// Whether that container alone gets the environment; else all containers do. Init containers never do.
    pub env_in_its_container_only: bool,
    /// The name of the port that is added to that container if it has none of this name. If empty, none is.
    pub port_name: &'static str,
    /// Its number.
    pub port: i32,
    /// The restart policy of a replica spec that has none.
    pub restart_policy: &'static RestartPolicy,
    /// The field below `spec` that holds the replica specs.
    pub roles_field: &'static str,
    /// If that field is a list: the field of an entry that names its role.
    pub role_key: Option<&'static str>,
    /// The roles in the order in which their pods are made.
    pub roles: &'static [RoleDefinition],
    /// The role whose number of replicas `kubectl scale` and autoscalers change, if there is one.
    pub scaled_role: Option<&'static str>,
    /// Whether a template may leave out images, because the kind's replica specs fill them in.
    pub fills_in_images: bool,
    /// Whether an entry may leave out its template, because the kind's replica specs fill it in.
    pub fills_in_templates: bool,
    /// Whether pods and services follow another pattern than `<job>-<role>-<index>`.
    pub names_replicas: bool,
    /// The kinds of objects that jobs have beside pods and services.
    pub objects: &'static [ObjectDefinition],
    /// The operator's settings that this kind reads; each is a flag of the operator.
    pub settings: &'static [SettingDefinition],
}

/// A setting of the operator that a kind reads, by [`Settings::get`](super::Settings::get).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingDefinition {
    /// Its name, such as `farm-monitor-image`.
    pub name: &'static str,
    /// What it has when nobody sets it.
    pub default: &'static str,
    /// What it is for, in a sentence.
    pub help: &'static str,
}

impl SettingDefinition {
    /// A setting of this name and default; `help` says in a sentence what it is for.
    pub const fn new(name: &'static str, default: &'static str, help: &'static str) -> Self {
        Self { name, default, help }
    }
}

impl Framework {
    /// A framework of this name, under this [`controller`](Self::controller). Its container has the same name, its
    /// port is `port` 80, its restart policy `Never`.
    pub const fn new(name: &'static str, controller: &'static str) -> Self {
        Self {
            name,
            controller,
            container: name,
            env_in_its_container_only: false,
            port_name: "port",
            port: 80,
            restart_policy: &RestartPolicy::Never,
            roles_field: "",
            role_key: None,
            roles: &[],
            scaled_role: None,
            fills_in_images: false,
            fills_in_templates: false,
            names_replicas: false,
            objects: &[],
            settings: &[],
        }
    }

    /// The [`container`](Self::container) that every replica must have.
    #[must_use]
    pub const fn container(mut self, name: &'static str) -> Self {
        self.container = name;
        self
    }

    /// No container needs a certain name: the first one of each replica is the framework's.
    #[must_use]
    pub const fn first_container(self) -> Self {
        self.container("")
    }

    /// Gives the environment to the framework's container alone, where a second process with it would take the first one's
    /// place.
    #[must_use]
    pub const fn env_in_its_container_only(mut self) -> Self {
        self.env_in_its_container_only = true;
        self
    }

    /// The name (at most 15 characters) and number of the framework's port.
    #[must_use]
    pub const fn port(mut self, name: &'static str, number: i32) -> Self {
        self.port_name = name;
        self.port = number;
        self
    }

    /// The framework's container gets no port.
    #[must_use]
    pub const fn no_port(self) -> Self {
        self.port("", 0)
    }

    /// The restart policy of a replica spec that has none.
    #[must_use]
    pub const fn restart_policy(mut self, policy: &'static RestartPolicy) -> Self {
        self.restart_policy = policy;
        self
    }

    /// The field below `spec` that holds the replica specs, a map by role, and the roles in the order in which their
    /// pods are made.
    #[must_use]
    pub const fn roles(mut self, field: &'static str, roles: &'static [RoleDefinition]) -> Self {
        self.roles_field = field;
        self.roles = roles;
        self
    }

    /// The same where the field is a list of entries: `key` is the field of an entry that names its role.
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

    /// Lets `kubectl scale` and autoscalers change the number of replicas of this role: the definition gets the scale
    /// subresource, and a job's status the label selector of each role's pods. The replica specs must be a map.
    #[must_use]
    pub const fn scales(mut self, role: &'static str) -> Self {
        self.scaled_role = Some(role);
        self
    }

    /// Lets templates leave out images, because [`replica_specs`](super::TrainingJob::replica_specs) fills them in: the
    /// API server then does not ask for them. Validation looks at what was filled in.
    #[must_use]
    pub const fn fills_in_images(mut self) -> Self {
        self.fills_in_images = true;
        self
    }

    /// Lets roles leave out their template, because [`replica_specs`](super::TrainingJob::replica_specs) fills it in: the
    /// API server then does not ask for it. Validation looks at what was filled in.
    #[must_use]
    pub const fn fills_in_templates(mut self) -> Self {
        self.fills_in_templates = true;
        self
    }

    /// Says that [`replica_names`](super::TrainingJob::replica_names) makes other names than `<job>-<role>-<index>`: the
    /// API server then does not check their length. Validation does.
    #[must_use]
    pub const fn names_replicas(mut self) -> Self {
        self.names_replicas = true;
        self
    }

    /// The kinds of objects that jobs have beside pods and services, which
    /// [`objects`](super::TrainingJob::objects) makes.
    #[must_use]
    pub const fn objects(mut self, objects: &'static [ObjectDefinition]) -> Self {
        self.objects = objects;
        self
    }

    /// The operator's settings that this kind reads. A program that names the kind by
    /// `process::Program::kind` has a flag for each.
    #[must_use]
    pub const fn settings(mut self, settings: &'static [SettingDefinition]) -> Self {
        self.settings = settings;
        self
    }

    /// The path of the replica specs in a job, for errors: `spec.replicaSpecs`.
    pub fn roles_path(&self) -> String {
        format!("spec.{}", self.roles_field)
    }

    /// Which of a replica's containers is the framework's.
    pub(crate) fn container_of(&self, containers: &[Container]) -> Option<usize> {
        match self.container {
            "" => (!containers.is_empty()).then_some(0),
            name => containers.iter().position(|container| container.name == name),
        }
    }

    /// Whether any replica has a service, which takes the replica's name.
    pub(crate) fn has_services(&self) -> bool {
        self.roles.iter().any(|role| role.has_service)
    }

    /// Whether some role must have replicas in every job.
    pub(crate) fn needs_some_role(&self) -> bool {
        self.roles.iter().any(|role| role.min > 0)
    }

    pub(crate) fn role_names(&self) -> Vec<&'static str> {
        self.roles.iter().map(|role| role.name).collect()
    }
}

/// A role that replicas of a kind of job may have, and how many of them.
///
/// A bound is declared here once: validation and the API server refuse a job beyond it, in the same words.
///
/// ```
/// use training_job::RoleDefinition;
///
/// const HEAD: RoleDefinition = RoleDefinition::new("Head").exactly(1);
/// assert_eq!((HEAD.min, HEAD.max), (1, 1));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoleDefinition {
    /// Its name, as in the replica specs.
    pub name: &'static str,
    /// The fewest replicas that a job must have of it; 0: a job can do without the role.
    pub min: u32,
    /// The most replicas that a job may have of it, at most [`MAX_REPLICAS`].
    pub max: u32,
    /// Whether its replicas have services, by whose names the others find them.
    pub has_service: bool,
    /// Whether its processes find the others again when the kubelet restarts their container.
    pub rejoins: bool,
}

impl RoleDefinition {
    /// A role that a job may leave out, with up to [`MAX_REPLICAS`] replicas.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            min: 0,
            max: MAX_REPLICAS.unsigned_abs(),
            has_service: true,
            rejoins: false,
        }
    }

    /// A job must have this many replicas of the role, or more.
    #[must_use]
    pub const fn at_least(mut self, replicas: u32) -> Self {
        self.min = replicas;
        self
    }

    /// A job may have this many replicas of the role, or fewer.
    #[must_use]
    pub const fn at_most(mut self, replicas: u32) -> Self {
        self.max = replicas;
        self
    }

    /// A job must have just this many replicas of the role.
    #[must_use]
    pub const fn exactly(self, replicas: u32) -> Self {
        self.at_least(replicas).at_most(replicas)
    }

    /// Its replicas have no services: nobody connects to them.
    #[must_use]
    pub const fn without_services(mut self) -> Self {
        self.has_service = false;
        self
    }

    /// Its processes find the others again when the kubelet restarts their container: that is no failure, whatever restarts
    /// together with a replica of the role. It counts against the backoff limit.
    #[must_use]
    pub const fn rejoins(mut self) -> Self {
        self.rejoins = true;
        self
    }

    /// The name in lower case, as in names of pods and values of labels.
    pub fn slug(&self) -> String {
        self.name.to_lowercase()
    }
}
