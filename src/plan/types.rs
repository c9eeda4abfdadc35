//! The plan for a job, and its parts.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Service};

use crate::api::JobStatus;
use crate::job::{JobObject, ObjectKind};
use crate::render;
use crate::validate::{Progress, ValidJob};

use super::reasons;

/// The actions that are due for a job.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Objects other than services and pods to create. They are created before the services.
    pub create_objects: Vec<JobObject>,
    /// Names of pods to read from the API server before anything is done, because the caches do not show whether they
    /// exist. If there are any, the plan must be made again, with [`Observed::read`](super::observed::Observed::read).
    pub unread: Vec<String>,
    /// Patches of existing objects that differ from their wanted state. Of a pod only labels are changed.
    pub patch_objects: Vec<ObjectPatch>,
    /// Services to create, before the pods.
    pub create_services: Vec<Service>,
    /// Pods to create, in order.
    pub create_pods: Vec<PlannedPod>,
    /// Objects to delete.
    pub delete: Vec<Deletion>,
    /// Existing objects that refer to missing objects.
    pub dangling: Vec<Dangling>,
    /// True if the job itself is to be deleted because its time to live is over.
    pub delete_job: bool,
    /// The next status, if it differs from the stored one.
    pub status: Option<StatusChange>,
    /// Events to send once the status is stored.
    pub events: Vec<PlannedEvent>,
    /// Events about conditions that last. One event is sent for each reason. It is sent again only after a plan
    /// without any notices.
    pub notices: Vec<PlannedEvent>,
    /// The time of the next reconcile if nothing happens before.
    pub requeue: Option<Requeue>,
    /// True if pods of a gang wait for capacity, so that their scheduler must be notified when capacity is freed.
    pub waits_for_capacity: bool,
    /// True if the job cannot be run because it is invalid or cannot be read.
    pub refused: bool,
    /// The pods whose output is read until the next plan, if the job requests it.
    pub output: Option<OutputWatch>,
}

/// The pods of a job whose output is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputWatch {
    /// The pods. Their containers run.
    pub pods: Vec<WatchedPod>,
    /// The progress policy of the job.
    pub progress: Progress,
}

/// A run of a container whose output is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedPod {
    /// The name of the pod.
    pub name: String,
    /// The UID of the pod.
    pub uid: String,
    /// The name of the container.
    pub container: String,
    /// The number of restarts of the container before this run.
    pub restarts: i32,
}

/// A pod to create. It is rendered when its call is made, because each pod of a large job may name all others, and a
/// thousand of those are tens of megabytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedPod {
    /// The name of the pod, which identifies the replica.
    pub name: String,
    /// The number of restarts that the replica has had.
    pub attempt: u32,
}

/// A status to store.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusChange {
    /// The whole status.
    pub status: JobStatus,
    /// True if the status must be written immediately. Updates of counts only, or that report only that a job was
    /// created or begins to run in part, may be deferred, so that changes that follow each other share one write.
    pub urgent: bool,
    /// The least time since the last write, if only the progress has changed.
    pub at_most_every: Option<Duration>,
}

impl StatusChange {
    /// Returns the change to a status that must be written immediately.
    pub fn urgent(status: JobStatus) -> Self {
        Self {
            status,
            urgent: true,
            at_most_every: None,
        }
    }
}

/// A change of an existing object.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectPatch {
    /// The wanted fields. Fields that it leaves out are kept.
    pub object: JobObject,
    /// The UID of the object. A later object of the same name is not affected.
    pub uid: String,
}

/// An object to delete.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deletion {
    /// The kind of the object.
    pub kind: ChildKind,
    /// The name of the object.
    pub name: String,
    /// The UID of the object. A later object of the same name is not affected.
    pub uid: String,
    /// True for a forced deletion. The object is removed immediately, even if it is being deleted already and its
    /// node does not confirm that its processes have ended.
    pub force: bool,
}

impl Deletion {
    pub(super) fn new(kind: ChildKind, name: &str, uid: &str) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            uid: uid.to_owned(),
            force: false,
        }
    }
}

/// An object to delete if one of its referents cannot be created because another owner has the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dangling {
    /// The deletion of the object.
    pub deletion: Deletion,
    /// The missing objects that it refers to, by kind and name.
    pub referents: Vec<(ChildKind, String)>,
}

/// A kind of object that jobs own. Objects are created in the order of this enum, and deleted in the opposite order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChildKind {
    /// A kind made by [`TrainingJob::objects`](crate::TrainingJob::objects) that is neither pod nor service.
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
    /// Returns the kind as the API server names it.
    pub fn object_kind(self) -> ObjectKind {
        match self {
            Self::Object(kind) => kind,
            Self::Service => ObjectKind::of::<Service>(),
            Self::Pod => ObjectKind::of::<Pod>(),
        }
    }

    /// Returns the word for the kind in events and logs, as in the Go operator.
    pub fn noun(self) -> String {
        match self {
            Self::Pod | Self::Service => self.object_kind().kind.to_lowercase(),
            Self::Object(kind) => kind.kind.to_owned(),
        }
    }
}

/// An event about the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedEvent {
    /// True for an event of type Warning, false for Normal.
    pub warning: bool,
    /// The reason, in one word.
    pub reason: String,
    /// The message, a sentence.
    pub message: String,
}

/// A planned reconcile.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requeue {
    /// The time of the reconcile.
    pub at: Timestamp,
    /// The reason for the reconcile.
    pub why: &'static str,
}

impl PlannedPod {
    /// Returns the pod to create. Returns None if no replica of `job` has its name, which cannot be the case for a
    /// pod that was planned for this job.
    pub fn render(&self, job: &ValidJob<'_>) -> Option<Pod> {
        let replica = job.topology.replica_named(&self.name)?;
        Some(render::pod(job, &replica, self.attempt))
    }
}

impl Plan {
    /// Returns true if any children are to be created, changed or deleted.
    pub fn changes_children(&self) -> bool {
        self.creates() > 0 || !self.patch_objects.is_empty() || !self.delete.is_empty()
    }

    /// Returns the number of children to create.
    pub fn creates(&self) -> usize {
        self.create_objects.len() + self.create_services.len() + self.create_pods.len()
    }

    /// Returns true if no action is due now.
    pub fn is_idle(&self) -> bool {
        !self.changes_children() && !self.delete_job && self.status.is_none() && self.events.is_empty()
    }

    /// Plans an immediate write of the status, and an event, if another writer has stored invalid values in it.
    /// `unsound` names the fields with such values; `status` is the stored status without these values.
    pub fn repair_status(&mut self, kind: &str, status: &JobStatus, unsound: &[&str]) {
        if unsound.is_empty() || self.delete_job {
            return;
        }
        let change = self
            .status
            .get_or_insert_with(|| StatusChange::urgent(status.clone()));
        change.urgent = true;
        self.events.push(PlannedEvent {
            warning: true,
            reason: format!("{kind}{}", reasons::STATUS_REPAIRED),
            message: format!(
                "The status contained invalid values in {}, which another client wrote; the operator replaced them with the \
                 observed state.",
                unsound.join(", ")
            ),
        });
    }

    /// Returns a plan that only reconciles at `at`, if there is such a time.
    pub(super) fn wait(at: impl Into<Option<Timestamp>>, why: &'static str) -> Self {
        Self {
            requeue: at.into().map(|at| Requeue { at, why }),
            ..Self::default()
        }
    }

    /// Returns a plan that only adds a notice.
    pub(super) fn notice(reason: &str, message: String) -> Self {
        Self::notices(reason, message, 1)
    }

    /// Returns a plan that only adds a notice about the first of several pods with the same problem.
    pub(super) fn notices(reason: &str, mut message: String, pods: usize) -> Self {
        message += &match pods {
            0 | 1 => String::new(),
            2 => "; another pod has the same problem".to_owned(),
            _ => format!("; {} other pods have the same problem", pods - 1),
        };
        let notice = PlannedEvent {
            warning: true,
            reason: reason.to_owned(),
            message,
        };
        Self {
            notices: vec![notice],
            ..Self::default()
        }
    }

    /// Returns a plan with the actions of both. The status and the events are those of this one.
    pub(super) fn and(mut self, other: Self) -> Self {
        fn join<T>(own: &mut Vec<T>, other: Vec<T>) {
            match own.is_empty() {
                // Most parts are empty, and some are long.
                true => *own = other,
                false => own.extend(other),
            }
        }
        join(&mut self.create_objects, other.create_objects);
        join(&mut self.unread, other.unread);
        join(&mut self.patch_objects, other.patch_objects);
        join(&mut self.create_services, other.create_services);
        join(&mut self.create_pods, other.create_pods);
        join(&mut self.delete, other.delete);
        join(&mut self.dangling, other.dangling);
        join(&mut self.notices, other.notices);
        self.delete_job |= other.delete_job;
        self.waits_for_capacity |= other.waits_for_capacity;
        self.output = self.output.or(other.output);
        if let Some(Requeue { at, why }) = other.requeue {
            self.requeue_at(at, why);
        }
        self
    }

    /// Plans a reconcile at `at`, unless an earlier one is planned.
    pub(super) fn requeue_at(&mut self, at: Timestamp, why: &'static str) {
        if self.requeue.as_ref().is_none_or(|requeue| at < requeue.at) {
            self.requeue = Some(Requeue { at, why });
        }
    }
}
