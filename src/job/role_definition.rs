//! The roles of a kind: their places in a job, bounds, order and names.

use crate::api::MAX_REPLICAS;

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
    /// The framework's container in its replicas; [`Framework::main_container`](crate::Framework::main_container) if unset.
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
    /// twice. Errors of the template name that field, which is a `PodTemplateSpec` with the schema
    /// [`pod_template`](crate::api::schema::pod_template). For roles of a list or map;
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
    /// The entry of this role in [`Framework::roles_field`](crate::Framework::roles_field).
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
