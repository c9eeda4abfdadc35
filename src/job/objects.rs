//! Objects that a job has in addition to the pods and services of its replicas, for example a ConfigMap or a Role.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// A namespaced type of object that an API server stores, such as ConfigMap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct ObjectKind {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version, such as `v1`.
    pub version: &'static str,
    /// The kind, such as `ConfigMap`.
    pub kind: &'static str,
    /// The name in paths and permissions, such as `configmaps`.
    pub plural: &'static str,
}

impl ObjectKind {
    /// Creates a kind for a custom resource: `ObjectKind::new("example.com", "v1", "Queue", "queues")`.
    pub const fn new(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self {
            group,
            version,
            kind,
            plural,
        }
    }

    /// Returns a built-in kind of Kubernetes.
    pub const fn of<K: k8s_openapi::Resource>() -> Self {
        Self::new(K::GROUP, K::VERSION, K::KIND, K::URL_PATH_SEGMENT)
    }

    /// Returns true if every API server serves the kind, because its group is built into Kubernetes.
    pub fn is_built_in(&self) -> bool {
        !self.group.contains('.') || self.group.ends_with(".authorization.k8s.io")
    }

    /// Returns an object of this kind. `content` has the fields other than `apiVersion`, `kind` and `metadata`.
    pub fn object(self, name: impl Into<String>, content: Value) -> JobObject {
        JobObject {
            kind: self,
            metadata: ObjectMeta {
                name: Some(name.into()),
                ..ObjectMeta::default()
            },
            content,
        }
    }

    /// Returns `group/version`, or only the version for the core group.
    pub(crate) fn api_version(self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }
}

/// A kind of object that jobs of a framework have, with its lifetime.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use training_job::{ObjectDefinition, ObjectKind};
///
/// const CONFIG: ObjectKind = ObjectKind::of::<ConfigMap>();
/// const OBJECTS: &[ObjectDefinition] = &[
///     ObjectDefinition::new(CONFIG),
///     ObjectDefinition::new(ObjectKind::new("example.com", "v1", "Queue", "queues")).while_active(),
/// ];
/// assert_eq!(OBJECTS[0].kind.plural, "configmaps");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectDefinition {
    /// The kind.
    pub kind: ObjectKind,
    /// True if its objects are deleted when the job is suspended or has ended, after its last running pod.
    pub while_active: bool,
    /// True if the job can run without them.
    pub optional: bool,
    /// The kinds of the job's other objects to which objects of this kind refer.
    pub refers_to: &'static [ObjectKind],
    /// The object of this kind that is mounted into the job's pods, if any.
    pub mount: Option<MountDefinition>,
}

/// An object of a job that is mounted into its pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MountDefinition {
    /// The end of the object's name, after the name of the job and `-`.
    pub name: &'static str,
    /// The path in the containers.
    pub path: &'static str,
}

impl MountDefinition {
    /// Returns the name of the object of the job `job`.
    pub fn object_name(&self, job: &str) -> String {
        format!("{job}-{}", self.name)
    }
}

impl ObjectDefinition {
    /// Creates a definition whose objects exist until the job is deleted.
    pub const fn new(kind: ObjectKind) -> Self {
        Self {
            kind,
            while_active: false,
            optional: false,
            refers_to: &[],
            mount: None,
        }
    }

    /// Mounts the ConfigMap or Secret `<job>-<name>` at `path`, read-only, into the containers of all replicas that get
    /// the environment. The hook [`objects`](crate::TrainingJob::objects) creates it. A container that mounts something
    /// else at that path keeps it.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use training_job::{ObjectDefinition, ObjectKind};
    ///
    /// const CONFIG: ObjectKind = ObjectKind::of::<ConfigMap>();
    /// // Containers of the job `primes` see the ConfigMap `primes-cluster` at this path.
    /// const OBJECTS: &[ObjectDefinition] = &[ObjectDefinition::new(CONFIG).mounted_at("cluster", "/etc/cluster")];
    /// assert_eq!(OBJECTS[0].mount.unwrap().object_name("primes"), "primes-cluster");
    /// ```
    #[must_use]
    pub const fn mounted_at(mut self, name: &'static str, path: &'static str) -> Self {
        self.mount = Some(MountDefinition { name, path });
        self
    }

    /// Deletes the objects when the job is suspended or has ended, after its last running pod.
    #[must_use]
    pub const fn while_active(mut self) -> Self {
        self.while_active = true;
        self
    }

    /// Lets the job run without these objects. An event reports an error of their creation, and pods do not wait for
    /// them. Where objects are deleted together with the pods, these are deleted immediately.
    #[must_use]
    pub const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Declares that these objects refer to the job's other objects of `kinds`, as a RoleBinding refers to a Role.
    /// Each is created when all of those exist and the job controls them, and is deleted when one of those is gone.
    /// Otherwise it would refer to any object that takes the name.
    ///
    /// ```
    /// use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
    /// use training_job::{ObjectDefinition, ObjectKind};
    ///
    /// const ROLE: ObjectKind = ObjectKind::of::<Role>();
    /// const OBJECTS: &[ObjectDefinition] = &[
    ///     ObjectDefinition::new(ROLE),
    ///     ObjectDefinition::new(ObjectKind::of::<RoleBinding>()).refers_to(&[ROLE]),
    /// ];
    /// assert_eq!(OBJECTS[1].refers_to, [ROLE]);
    /// ```
    #[must_use]
    pub const fn refers_to(mut self, kinds: &'static [ObjectKind]) -> Self {
        self.refers_to = kinds;
        self
    }
}

/// An object of a job, created by [`ObjectKind::object`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct JobObject {
    /// The kind of the object.
    pub kind: ObjectKind,
    /// The name, and labels and annotations of its own. Namespace, owner and the labels for the watch are added when
    /// it is rendered.
    pub metadata: ObjectMeta,
    /// The fields other than `apiVersion`, `kind` and `metadata`: `data`, `spec`, `rules`.
    pub content: Value,
}

impl JobObject {
    /// Returns the name of the object; empty if it has none.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }
}

impl Serialize for JobObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("apiVersion", &self.kind.api_version())?;
        object.serialize_entry("kind", self.kind.kind)?;
        object.serialize_entry("metadata", &self.metadata)?;
        for (name, value) in self.content.as_object().into_iter().flatten() {
            object.serialize_entry(name, value)?;
        }
        object.end()
    }
}
