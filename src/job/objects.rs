//! Objects that a job has beside the pods and services of its replicas: a ConfigMap, a Role.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// A namespaced type of object that an API server stores, such as ConfigMap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct ObjectKind {
    /// Its API group; empty for the core group.
    pub group: &'static str,
    /// Its version, such as `v1`.
    pub version: &'static str,
    /// Its kind, such as `ConfigMap`.
    pub kind: &'static str,
    /// Its name in paths and permissions, such as `configmaps`.
    pub plural: &'static str,
}

impl ObjectKind {
    /// A kind that is a custom resource: `ObjectKind::new("example.com", "v1", "Queue", "queues")`.
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

    /// A kind of Kubernetes' own.
    pub const fn of<K: k8s_openapi::Resource>() -> Self {
        Self::new(K::GROUP, K::VERSION, K::KIND, K::URL_PATH_SEGMENT)
    }

    /// An object of this kind. `content` has what stands beside `apiVersion`, `kind` and `metadata`.
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

    /// `group/version`, or the version alone in the core group.
    pub(crate) fn api_version(self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }
}

/// A kind of object that jobs of a framework have, and how long.
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
    /// Whether its objects are deleted when the job is suspended or has ended, once none of its pods runs.
    pub while_active: bool,
    /// Whether the job does without them.
    pub optional: bool,
}

impl ObjectDefinition {
    /// Objects of this kind stay until the job is deleted, and go with it.
    pub const fn new(kind: ObjectKind) -> Self {
        Self {
            kind,
            while_active: false,
            optional: false,
        }
    }

    /// They go when the job is suspended or has ended, after its last pod that runs.
    #[must_use]
    pub const fn while_active(mut self) -> Self {
        self.while_active = true;
        self
    }

    /// The job does without them: what keeps one from being made is told by an event, and its pods do not wait for it.
    /// Where objects go with the pods, these go at once.
    #[must_use]
    pub const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }
}

/// An object that a job has, made by [`ObjectKind::object`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct JobObject {
    /// What it is.
    pub kind: ObjectKind,
    /// Its name, and labels and annotations of its own. Namespace, owner and the labels by which it is watched are
    /// added when it is rendered.
    pub metadata: ObjectMeta,
    /// What stands beside `apiVersion`, `kind` and `metadata`: `data`, `spec`, `rules`.
    pub content: Value,
}

impl JobObject {
    pub(crate) fn name(&self) -> &str {
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
