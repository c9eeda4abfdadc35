//! What a plan says.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Service};

use crate::api::JobStatus;
use crate::job::{JobObject, ObjectKind, TrainingJob};
use crate::render;
use crate::validate::ValidJob;

/// What is to be done for a job now.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Plan {
    /// Objects beside services and pods to create, before those.
    pub create_objects: Vec<JobObject>,
    /// Objects that differ from what the job says, as they are to be.
    pub patch_objects: Vec<ObjectPatch>,
    /// Services to create, before the pods.
    pub create_services: Vec<Service>,
    /// Pods to create, in order.
    pub create_pods: Vec<PlannedPod>,
    /// Objects to delete.
    pub delete: Vec<Deletion>,
    /// Whether the job itself is to be deleted, its time to live being over.
    pub delete_job: bool,
    /// The next status, if it differs from the stored one.
    pub status: Option<StatusChange>,
    /// Events to send once the status is stored.
    pub events: Vec<PlannedEvent>,
    /// Events that are due as long as what they say holds: each reason is sent once, and again only
    /// after none held.
    pub notices: Vec<PlannedEvent>,
    /// When to look again even if nothing happens.
    pub requeue: Option<Requeue>,
    /// Whether pods of a gang wait for room, of which its scheduler has to be told when there is some.
    pub waits_for_room: bool,
    /// Whether the job cannot be run as it is.
    pub refused: bool,
}

/// A pod to create. It is rendered when its turn comes: each pod of a large job may name all others, and a thousand of
/// those are tens of megabytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedPod {
    /// Its name, which says which replica it is.
    pub name: String,
    /// How many restarts its replica has had.
    pub attempt: u32,
}

/// A status to store.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StatusChange {
    /// The whole status.
    pub status: JobStatus,
    /// Whether it is to be written at once. News of mere counts, or that a job was created or begins to run in part,
    /// may wait a little, so that what changes together costs one write.
    pub urgent: bool,
}

/// An object to change.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ObjectPatch {
    /// What it is to have. What is not in it stays as it is.
    pub object: JobObject,
    /// Its UID: an object of the same name that came later is not meant.
    pub uid: String,
}

/// An object to delete.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Deletion {
    /// What it is.
    pub kind: ChildKind,
    /// Its name.
    pub name: String,
    /// Its UID: an object of the same name that came later is not meant.
    pub uid: String,
}

/// A kind of object that jobs own, in the order in which they are created. They are deleted in the opposite order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChildKind {
    /// One that [`TrainingJob::objects`](crate::TrainingJob::objects) makes, and that is neither pod nor service.
    Object(ObjectKind),
    /// A service, of a replica or not.
    Service,
    /// A pod, of a replica or not.
    Pod,
}

impl From<ObjectKind> for ChildKind {
    fn from(kind: ObjectKind) -> Self {
        [Self::Service, Self::Pod]
            .into_iter()
            .find(|own| own.object_kind() == kind)
            .unwrap_or(Self::Object(kind))
    }
}

impl ChildKind {
    /// The kind as the API server knows it.
    pub fn object_kind(self) -> ObjectKind {
        match self {
            Self::Object(kind) => kind,
            Self::Service => ObjectKind::of::<Service>(),
            Self::Pod => ObjectKind::of::<Pod>(),
        }
    }

    /// The word for it in events and logs, as the Go operator has it.
    pub(crate) fn noun(self) -> String {
        match self {
            Self::Pod | Self::Service => self.object_kind().kind.to_lowercase(),
            Self::Object(kind) => kind.kind.to_owned(),
        }
    }
}

/// An event about the job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedEvent {
    /// Whether it is of type Warning; else Normal.
    pub warning: bool,
    /// Why, in one word.
    pub reason: String,
    /// The sentence.
    pub message: String,
}

/// A time to look again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Requeue {
    /// When.
    pub at: Timestamp,
    /// Why.
    pub why: &'static str,
}

impl PlannedPod {
    /// The pod as it is created; nothing if no replica of `job` has its name, which is so for none that was planned for
    /// this job.
    pub fn render<J: TrainingJob>(&self, job: &ValidJob<'_, J>) -> Option<Pod> {
        let replica = job.topology.replica_named(&self.name)?;
        Some(render::pod(job, &replica, self.attempt))
    }
}

impl Plan {
    /// Whether any children are to be created, changed or deleted.
    pub fn changes_children(&self) -> bool {
        self.creates() > 0 || !self.patch_objects.is_empty() || !self.delete.is_empty()
    }

    /// How many children are to be created.
    pub(crate) fn creates(&self) -> usize {
        self.create_objects.len() + self.create_services.len() + self.create_pods.len()
    }

    /// Whether there is nothing to do now.
    pub fn is_idle(&self) -> bool {
        !self.changes_children() && !self.delete_job && self.status.is_none() && self.events.is_empty()
    }

    /// There is one reason at most: a verdict waits for one thing.
    pub(super) fn requeue_at(&mut self, at: Timestamp, why: &'static str) {
        if self.requeue.as_ref().is_none_or(|requeue| at < requeue.at) {
            self.requeue = Some(Requeue { at, why });
        }
    }
}
