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
            random: None,
            original: None,
        }
    }

    /// Returns a mount of the object `name` of this kind, a ConfigMap, a Secret or a PersistentVolumeClaim, at `path`.
    pub fn mount(self, name: impl Into<String>, path: impl Into<String>) -> Mount {
        Mount {
            kind: self,
            name: name.into(),
            path: path.into(),
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
    /// True if the objects are created and never changed.
    pub created_once: bool,
    /// The kinds of the job's other objects to which objects of this kind refer.
    pub refers_to: &'static [ObjectKind],
    /// The object of this kind that is mounted into the job's pods, if any.
    pub mount: Option<MountDefinition>,
}

/// An object that is mounted into the pods of a role, made by [`ObjectKind::mount`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mount {
    /// The kind of the object.
    pub kind: ObjectKind,
    /// The name of the object, in the job's namespace.
    pub name: String,
    /// The path in the containers.
    pub path: String,
}

/// An object of a job that is mounted into its pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MountDefinition {
    /// The end of the object's name, after the name of the job and `-`.
    pub name: &'static str,
    /// The path in the containers.
    pub path: &'static str,
    /// The classes of the roles that mount it; all if empty.
    pub roles: &'static [&'static str],
}

impl MountDefinition {
    /// Returns the name of the object of the job `job`.
    pub fn object_name(&self, job: &str) -> String {
        format!("{job}-{}", self.name)
    }

    /// Returns true if the replicas of roles of this class mount it.
    pub(crate) fn is_in(&self, class: &str) -> bool {
        self.roles.is_empty() || self.roles.contains(&class)
    }
}

impl ObjectDefinition {
    /// Creates a definition whose objects exist until the job is deleted.
    pub const fn new(kind: ObjectKind) -> Self {
        Self {
            kind,
            while_active: false,
            optional: false,
            created_once: false,
            refers_to: &[],
            mount: None,
        }
    }

    /// Mounts the ConfigMap, Secret or PersistentVolumeClaim `<job>-<name>` at `path` into the containers that get the
    /// environment, of all replicas or of those that [`mounted_in`](Self::mounted_in) names. Only a claim can be written
    /// to. The hook [`objects`](crate::TrainingJob::objects) creates it. A container that mounts something
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
        self.mount = Some(MountDefinition {
            name,
            path,
            roles: &[],
        });
        self
    }

    /// Mounts the object only into the replicas of these classes. Call it after [`mounted_at`](Self::mounted_at).
    #[must_use]
    pub const fn mounted_in(mut self, classes: &'static [&'static str]) -> Self {
        if let Some(mount) = &mut self.mount {
            mount.roles = classes;
        }
        self
    }

    /// Creates the objects once and never changes them: what a user edits in them stays. An object that is deleted while
    /// the job is active is created again, with other random bytes if it has some. Processes that have read the former
    /// object keep what they read.
    #[must_use]
    pub const fn created_once(mut self) -> Self {
        self.created_once = true;
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

/// Fields of an object that are made of random bytes when it is created.
#[derive(Clone, Copy, Debug)]
struct RandomContent {
    bytes: usize,
    content: fn(&[u8]) -> Value,
}

/// An object of a job, created by [`ObjectKind::object`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JobObject {
    /// The kind of the object.
    pub kind: ObjectKind,
    /// The name, and labels and annotations of its own. Namespace, owner and the labels for the watch are added when
    /// it is rendered.
    pub metadata: ObjectMeta,
    /// The fields other than `apiVersion`, `kind` and `metadata`: `data`, `spec`, `rules`.
    pub content: Value,
    random: Option<RandomContent>,
    original: Option<String>,
}

impl PartialEq for JobObject {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, &self.metadata, &self.content, &self.original)
            == (other.kind, &other.metadata, &other.content, &other.original)
    }
}

impl JobObject {
    /// The most random bytes of an object.
    pub const MAX_RANDOM_BYTES: usize = 1024;

    /// Adds fields to a Secret that are made of random bytes, at most [`MAX_RANDOM_BYTES`](Self::MAX_RANDOM_BYTES), such as a
    /// key that the job's processes share. The operator draws the bytes from the operating system when it creates the
    /// object, and keeps them nowhere else: reviews and snapshots do not show these fields. The definition of the kind must
    /// be [created once](ObjectDefinition::created_once).
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Secret;
    /// use k8s_openapi::ByteString;
    /// use serde_json::json;
    /// use training_job::{JobObject, ObjectKind};
    ///
    /// fn key(job: &str) -> JobObject {
    ///     let secret = ObjectKind::of::<Secret>().object(format!("{job}-key"), json!({"type": "Opaque"}));
    ///     secret.with_random(32, |bytes| json!({"data": {"munge.key": ByteString(bytes.to_vec())}}))
    /// }
    /// assert_eq!(key("primes").content, json!({"type": "Opaque"}));
    /// ```
    #[must_use]
    pub fn with_random(mut self, bytes: usize, content: fn(&[u8]) -> Value) -> Self {
        self.random = Some(RandomContent { bytes, content });
        self
    }

    /// Gives the object the content that the object `name` of the same kind and namespace has when this one is created, such
    /// as settings of a team that a job refers to. Its later changes have no effect on the job. While it does not exist, the
    /// job waits, with an event and the reason `FailedCreate<kind>`. Reviews and snapshots do not show the content. The
    /// definition of the kind must be [created once](ObjectDefinition::created_once).
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use serde_json::json;
    /// use training_job::{JobObject, ObjectKind};
    ///
    /// fn settings(job: &str, name: &str) -> JobObject {
    ///     ObjectKind::of::<ConfigMap>().object(format!("{job}-settings"), json!({})).copied_from(name)
    /// }
    /// assert_eq!(settings("primes", "team").original(), Some("team"));
    /// ```
    #[must_use]
    pub fn copied_from(mut self, name: impl Into<String>) -> Self {
        self.original = Some(name.into());
        self
    }

    /// Returns the name of the object that this one is a copy of, if it is one.
    pub fn original(&self) -> Option<&str> {
        self.original.as_deref()
    }

    /// Returns the object to create, with the fields of its original. Those that only its owner decides about are left out.
    pub fn copy_of(&self, original: &Value) -> Self {
        let mut fields = original.clone();
        if let Some(fields) = fields.as_object_mut() {
            fields.retain(|name, _| !["immutable", "status"].contains(&name.as_str()));
        }
        self.with_fields(fields)
    }

    fn with_fields(&self, fields: Value) -> Self {
        let mut object = self.clone();
        if let (Value::Object(fields), Value::Object(content)) = (fields, &mut object.content) {
            content.extend(fields);
        }
        object
    }

    /// Returns the number of random bytes that [`drawn`](Self::drawn) needs.
    pub fn random_bytes(&self) -> usize {
        self.random.map_or(0, |random| random.bytes)
    }

    /// Returns the object to create, with the fields that are made of these random bytes.
    pub fn drawn(&self, bytes: &[u8]) -> Self {
        let fields = self.random.map(|random| (random.content)(bytes));
        self.with_fields(fields.unwrap_or_default())
    }

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
