//! A job of a cluster.

use std::sync::Arc;

use jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject};
use serde_json::Value;
use training_job::FieldErrors;
use training_job::api::JobStatus;
use training_job_review::Kind;
use training_job_review::check::Job;

use crate::outline::Outline;
use crate::outline::outline;

/// A job of a cluster.
#[derive(Clone, Debug)]
pub struct StoredJob {
    /// The kind.
    pub kind: Arc<Kind>,
    /// The object with its apiVersion and kind.
    pub object: Value,
    /// The status; the default if the job has none, or one that cannot be decoded.
    pub status: JobStatus,
    /// The errors are those of an invalid job.
    pub outline: Result<Outline, FieldErrors>,
}

impl StoredJob {
    pub(crate) fn new(kind: &Arc<Kind>, stored: &DynamicObject) -> anyhow::Result<Self> {
        let mut object = serde_json::to_value(stored)?;
        // Items of a list lack their apiVersion and kind.
        object["apiVersion"] = kind.resource.api_version.clone().into();
        object["kind"] = kind.resource.kind.clone().into();
        Ok(Self::of_value(kind, object))
    }

    /// Reads an object with its apiVersion and kind.
    pub fn of_value(kind: &Arc<Kind>, object: Value) -> Self {
        let (status, outline) = outline(kind, &object);
        Self {
            kind: kind.clone(),
            object,
            status,
            outline,
        }
    }

    /// Returns the job for the commands that check jobs.
    ///
    /// # Errors
    /// The job is invalid.
    pub fn checked(&self) -> anyhow::Result<Job> {
        let origin = format!("{} {}/{}", self.kind.name(), self.namespace(), self.name());
        Job::stored(self.kind.clone(), &self.object, origin)
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        self.metadata("name")
    }

    /// Returns the namespace.
    pub fn namespace(&self) -> &str {
        self.metadata("namespace")
    }

    /// Returns the UID; empty for an object that no API server has stored.
    pub fn uid(&self) -> &str {
        self.metadata("uid")
    }

    fn metadata(&self, field: &str) -> &str {
        self.object["metadata"][field].as_str().unwrap_or_default()
    }

    /// Returns the creation time.
    pub fn created(&self) -> Option<Timestamp> {
        self.metadata("creationTimestamp").parse().ok()
    }

    /// Returns `mxjob.kubeflow.org/train`, as kubectl names objects.
    pub(crate) fn resource_name(&self) -> String {
        resource_name(&self.kind.resource, self.name())
    }

    /// Returns the argument that names the job in any namespace with jobs of the same name.
    pub(crate) fn argument(&self) -> String {
        let kind = self.kind.name();
        // The kinds of 2017 differ from today's in case only.
        format!("{kind}/{}", self.name())
    }

    /// Returns the label selector of the job's objects.
    pub fn selector(&self) -> String {
        self.kind.framework.selector_of(self.name())
    }
}

/// Returns `mxjob.kubeflow.org/train`, as kubectl names objects.
pub(super) fn resource_name(resource: &ApiResource, name: &str) -> String {
    format!("{}.{}/{name}", resource.kind.to_lowercase(), resource.group)
}
