//! A job of a cluster.

use std::sync::Arc;

use jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject};
use serde_json::Value;
use training_job::FieldErrors;
use training_job::api::JobStatus;
use training_job::api::labels::OPERATOR_NAME;

use super::outline::outline;
use crate::check::Job;
use crate::kinds::Kind;

use super::outline::Outline;

/// A job of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct StoredJob {
    pub(crate) kind: Arc<Kind>,
    /// The object with its apiVersion and kind.
    pub(crate) object: Value,
    pub(crate) status: JobStatus,
    /// The errors are those of an invalid job.
    pub(crate) outline: Result<Outline, FieldErrors>,
}

impl StoredJob {
    pub(crate) fn new(kind: &Arc<Kind>, stored: &DynamicObject) -> anyhow::Result<Self> {
        let mut object = serde_json::to_value(stored)?;
        // Items of a list lack their apiVersion and kind.
        object["apiVersion"] = kind.resource.api_version.clone().into();
        object["kind"] = kind.resource.kind.clone().into();
        Ok(Self::of_value(kind, object))
    }

    pub(crate) fn of_value(kind: &Arc<Kind>, object: Value) -> Self {
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
    pub(crate) fn checked(&self) -> anyhow::Result<Job> {
        let origin = format!("{} {}/{}", self.kind.name(), self.namespace(), self.name());
        Job::stored(self.kind.clone(), &self.object, origin)
    }

    pub(crate) fn name(&self) -> &str {
        self.metadata("name")
    }

    pub(crate) fn namespace(&self) -> &str {
        self.metadata("namespace")
    }

    pub(crate) fn uid(&self) -> &str {
        self.metadata("uid")
    }

    fn metadata(&self, field: &str) -> &str {
        self.object["metadata"][field].as_str().unwrap_or_default()
    }

    pub(crate) fn created(&self) -> Option<Timestamp> {
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
    pub(crate) fn selector(&self) -> String {
        let framework = &self.kind.framework;
        let job_name = framework.keys().job_name();
        format!(
            "{OPERATOR_NAME}={},{job_name}={}",
            framework.controller,
            self.name()
        )
    }
}

/// Returns `mxjob.kubeflow.org/train`, as kubectl names objects.
pub(super) fn resource_name(resource: &ApiResource, name: &str) -> String {
    format!("{}.{}/{name}", resource.kind.to_lowercase(), resource.group)
}
