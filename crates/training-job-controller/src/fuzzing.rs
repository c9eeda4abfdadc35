//! Access to the controller's internals for fuzzing and benchmarks. Not a public interface.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use kube::Client;
use serde_json::Value;

use training_job::api::JobStatus;
use training_job::job::{Kind, Settings};
use training_job::plan::observed::{Observed, PodRecord, ServiceRecord};
use training_job::plan::{ChildKind, Plan};

use super::cache::jobs;
use super::cache::partial_child::PartialChild;
use super::cache::stored_job::StoredJob;
use super::metrics::Metrics;
use super::operator::{Operator, Options};
use super::reconciler::{FirstList, JobReconciler};
use super::validate::Validated;

/// A namespace and a name or UID.
pub type Key = (String, String);

/// An operator that maintains its caches without reconciling.
pub struct Caches {
    operator: Operator,
    kind: JobReconciler,
}

impl Caches {
    /// Creates empty caches.
    pub fn new(kind: Kind, client: Client, options: Options) -> Self {
        Self {
            operator: Operator::new(client, options).manage_kind(kind.clone()),
            kind: JobReconciler::new(Arc::new(kind), 0, &Metrics::default()),
        }
    }

    /// Watches jobs, pods and services forever.
    pub async fn keep(&self) {
        let listed = FirstList::sender;
        tokio::join!(
            self.operator.watch_jobs(&self.kind, listed()),
            self.operator
                .watch_children::<PodRecord>(ChildKind::Pod, listed()),
            self.operator
                .watch_children::<ServiceRecord>(ChildKind::Service, listed()),
        );
    }

    /// Caches a job as if a watch had delivered it.
    pub fn job_applied(&self, job: Object) {
        self.kind.jobs().applied(job.0);
    }

    /// Caches a pod as if a watch had delivered it.
    pub fn pod_applied(&self, pod: &Pod) {
        let mut children = self.operator.context.children();
        children.applied::<PodRecord>(ChildKind::Pod, &pod.0);
    }

    /// Returns the UID and version of each job, by namespace and name.
    pub fn jobs(&self) -> BTreeMap<Key, (String, Option<String>)> {
        let held = self.kind.jobs();
        let jobs = held
            .all()
            .map(|(name, job)| (name, (jobs::uid(job.meta()), job.meta().resource_version.clone())));
        jobs.collect()
    }

    /// Returns the cached children of each job, by the job's namespace and UID.
    pub fn children(&self) -> BTreeMap<Key, Arc<Observed>> {
        self.operator.context.children().all()
    }
}

/// A job object as the controller caches it.
pub struct Object(StoredJob);

impl Object {
    /// Decodes an object.
    ///
    /// # Errors
    /// Its metadata cannot be decoded.
    pub fn read(kind: &Arc<Kind>, object: &Value) -> serde_json::Result<Self> {
        Self::from_text(kind, &object.to_string())
    }

    /// Decodes an object from the text of a watch event.
    ///
    /// # Errors
    /// The text is not JSON, or its metadata cannot be decoded.
    pub fn from_text(kind: &Arc<Kind>, text: &str) -> serde_json::Result<Self> {
        Ok(Self(StoredJob::of(kind, serde_json::from_str(text)?)))
    }

    /// Returns its status, as far as it can be decoded.
    pub fn status(&self) -> JobStatus {
        self.0.status()
    }

    /// Returns true if its status contains only values that an operator would write.
    pub fn is_sound(&self) -> bool {
        self.0.unsound().is_empty()
    }

    /// Returns the merge patch of its status by which the operator stores `next`.
    ///
    /// # Errors
    /// A status cannot be converted to JSON.
    pub fn status_change(&self, next: &JobStatus) -> serde_json::Result<Value> {
        let job = Validated::of(&self.0, &Settings::default());
        self.0.status_change(&self.status(), next, job.topology())
    }

    /// Returns the plan that the operator would make for the job.
    pub fn plan(&self, observed: &Observed, now: Timestamp) -> Plan {
        let job = Validated::of(&self.0, &Settings::default());
        job.plan(&self.0, &self.status(), observed, now)
    }

    /// Returns the pods that a plan for the job creates.
    pub fn pods(&self, plan: &Plan) -> Vec<v1::Pod> {
        let job = Validated::of(&self.0, &Settings::default());
        plan.create_pods
            .iter()
            .filter_map(|pod| job.render(pod))
            .collect()
    }
}

/// A pod, as far as the controller decodes it.
pub struct Pod(PartialChild<PodRecord>);

impl Pod {
    /// Decodes a pod from the text of a watch event.
    ///
    /// # Errors
    /// The text is not a pod, or a decoded field is invalid.
    pub fn from_text(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text).map(Self)
    }
}
