//! What a plan says.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Service};

use crate::api::JobStatus;

/// What is to be done for a job now.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Services to create, before the pods.
    pub create_services: Vec<Service>,
    /// Pods to create, in order.
    pub create_pods: Vec<Pod>,
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
    /// Whether the job cannot be run as it is.
    pub refused: bool,
}

/// A status to store.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusChange {
    /// The whole status.
    pub status: JobStatus,
    /// Whether it is to be written at once. News of mere counts, or that a job was created or begins to run in part,
    /// may wait a little, so that what changes together costs one write.
    pub urgent: bool,
}

/// An object to delete.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deletion {
    /// What it is.
    pub kind: ChildKind,
    /// Its name.
    pub name: String,
    /// Its UID: an object of the same name that came later is not meant.
    pub uid: String,
}

/// A kind of object that jobs own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChildKind {
    /// A pod.
    Pod,
    /// A service.
    Service,
}

impl ChildKind {
    /// The word for it in events and logs.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Pod => "pod",
            Self::Service => "service",
        }
    }
}

/// An event about the job.
#[derive(Clone, Debug, PartialEq, Eq)]
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
pub struct Requeue {
    /// When.
    pub at: Timestamp,
    /// Why.
    pub why: &'static str,
}

impl Plan {
    /// Whether pods or services are to be created or deleted.
    pub fn changes_children(&self) -> bool {
        !(self.create_services.is_empty() && self.create_pods.is_empty() && self.delete.is_empty())
    }

    /// Whether there is nothing to do now.
    pub fn is_idle(&self) -> bool {
        !self.changes_children() && !self.delete_job && self.status.is_none() && self.events.is_empty()
    }

    /// There is one reason at most: a verdict waits for one thing.
    pub(super) fn requeue_at(&mut self, at: Timestamp, why: &'static str) {
        self.requeue = Some(Requeue { at, why });
    }
}
