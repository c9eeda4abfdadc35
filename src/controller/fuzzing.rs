//! What fuzzing and benchmarks must see of the controller's inside. No interface.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use kube::{Client, Resource};
use serde_json::Value;
use tokio::sync::watch;

use crate::api::JobStatus;
use crate::job::Settings;
use crate::job::TrainingJob;
use crate::plan::observed::{Observed, PodRecord, ServiceRecord};
use crate::plan::{ChildKind, Plan};

use super::cache::jobs;
use super::cache::partial_child::PartialChild;
use super::cache::stored_job::StoredJob;
use super::merge_patch;
use super::operator::{Operator, Options};
use super::reconciler::{JobReconciler, Reconciler};

/// A namespace and a name or UID.
pub type Key = (String, String);

/// An operator that keeps its caches, and does nothing with what they hold.
pub struct Caches<J> {
    operator: Operator,
    kind: JobReconciler<J>,
}

impl<J: TrainingJob> Caches<J> {
    /// Caches of nothing.
    pub fn new(client: Client, options: Options) -> Self {
        Self {
            operator: Operator::new(client, options).manage::<J>(),
            kind: JobReconciler::new(0),
        }
    }

    /// Watches jobs, pods and services for ever.
    pub async fn keep(&self) {
        let listed = || watch::Sender::new(false);
        tokio::join!(
            self.kind.watch(&self.operator.context, listed()),
            self.operator
                .watch_children::<PodRecord>(ChildKind::Pod, listed()),
            self.operator
                .watch_children::<ServiceRecord>(ChildKind::Service, listed()),
        );
    }

    /// Takes in what a watch tells of a job.
    pub fn job_applied(&self, job: Object<J>) {
        self.kind.jobs().applied(job.0);
    }

    /// Takes in what a watch tells of a pod.
    pub fn pod_applied(&self, pod: &Pod) {
        let mut children = self.operator.context.children();
        children.applied::<PodRecord>(ChildKind::Pod, &pod.0);
    }

    /// The UID and version of each job, by namespace and name.
    pub fn jobs(&self) -> BTreeMap<Key, (String, Option<String>)> {
        let held = self.kind.jobs();
        let jobs = held
            .all()
            .map(|(name, job)| (name, (jobs::uid(&*job), job.meta().resource_version.clone())));
        jobs.collect()
    }

    /// The cached children of each job, by the job's namespace and UID.
    pub fn children(&self) -> BTreeMap<Key, Arc<Observed>> {
        self.operator.context.children().all()
    }
}

/// An object as the API server holds it under a kind of job.
pub struct Object<J>(StoredJob<J>);

impl<J: TrainingJob> Object<J> {
    /// Reads it.
    ///
    /// # Errors
    /// It has no metadata that could be read.
    pub fn read(object: &Value) -> serde_json::Result<Self> {
        serde::Deserialize::deserialize(object).map(Self)
    }

    /// Reads it as a watch tells it.
    ///
    /// # Errors
    /// It is not JSON, or has no metadata that could be read.
    pub fn from_text(text: &str) -> serde_json::Result<Self> {
        StoredJob::read(text).map(Self)
    }

    /// Its status, as far as it can be read.
    pub fn status(&self) -> JobStatus {
        self.0.status()
    }

    /// What the operator would do for it.
    pub fn plan(&self, observed: &Observed, now: Timestamp) -> Plan {
        self.0
            .validate(&Settings::default())
            .plan(&self.status(), observed, now)
    }

    /// The pods that a plan of its own creates.
    pub fn pods(&self, plan: &Plan) -> Vec<v1::Pod> {
        let job = self.0.validate(&Settings::default());
        plan.create_pods
            .iter()
            .filter_map(|pod| job.render(pod))
            .collect()
    }
}

/// A pod, as far as it is decoded.
pub struct Pod(PartialChild<PodRecord>);

impl Pod {
    /// Reads it as a watch tells it.
    ///
    /// # Errors
    /// It is no pod, or what is kept of it cannot be read.
    pub fn from_text(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text).map(Self)
    }
}

/// The merge patch that makes `next` of a status that reads as `old`, for a kind whose status is a [`JobStatus`].
///
/// # Errors
/// A status is no JSON.
pub fn change(old: &JobStatus, next: &JobStatus) -> serde_json::Result<Value> {
    Ok(merge_patch::difference(
        &serde_json::to_value(old)?,
        serde_json::to_value(next)?,
    ))
}
