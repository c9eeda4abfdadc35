//! Finished jobs, for a program that keeps them after they are deleted.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

use training_job::api::{ConditionType, JobStatus};
use training_job::plan::observed::Observed;

use super::cache::stored_job::StoredJob;
use super::metrics::Metrics;

/// A job whose success or failure is stored.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FinishedJob {
    /// Kind of the job, such as `MXJob`.
    pub kind: String,
    /// UID of the job.
    pub uid: String,
    /// Time of the success or failure; unset if the status lacks it.
    pub finished_at: Option<Timestamp>,
    /// Children that the controller knew at that time.
    pub children: Arc<Observed>,
    /// JSON of the job, which the cache shares.
    text: Arc<str>,
    api_version: String,
}

/// Keeps jobs that have finished. An operator offers each of its finished jobs, after the end and after each start.
#[async_trait]
pub trait FinishedJobs: Debug + Send + Sync {
    /// Returns true if a job is to be added. Jobs that were added, or were tried without success, are not.
    fn wants(&self, uid: &str, finished_at: Option<Timestamp>) -> bool;

    /// Adds a job without delay. Returns false if too many are waiting; the operator offers the job again later.
    fn add(&self, job: FinishedJob) -> bool;

    /// Keeps the added jobs until the future is dropped. The operator runs it beside its reconciles, with its client and
    /// its metrics.
    async fn run(&self, client: Client, metrics: Metrics);
}

impl FinishedJob {
    /// Returns the job with these children.
    pub(super) fn new(job: &StoredJob, status: &JobStatus, children: Arc<Observed>) -> Self {
        let text = match job {
            StoredJob::Job { text, .. } => text.clone(),
            StoredJob::Unreadable { meta, stored, .. } => {
                json!({"metadata": meta, "status": stored}).to_string().into()
            }
        };
        Self {
            kind: job.kind().name().to_owned(),
            uid: job.meta().uid.clone().unwrap_or_default(),
            finished_at: finished_at(status),
            children,
            text,
            api_version: job.kind().resource.api_version.clone(),
        }
    }

    /// Returns the job as stored.
    pub fn object(&self) -> Value {
        let mut object: Value = serde_json::from_str(&self.text).unwrap_or_default();
        if let Some(object) = object.as_object_mut() {
            // Items of a list may lack both.
            object
                .entry("apiVersion")
                .or_insert_with(|| self.api_version.clone().into());
            object.entry("kind").or_insert_with(|| self.kind.clone().into());
        }
        object
    }
}

/// Returns the time of a job's success or failure.
fn finished_at(status: &JobStatus) -> Option<Timestamp> {
    let ends = [ConditionType::Succeeded, ConditionType::Failed];
    let mut ends = ends
        .into_iter()
        .filter(|end| status.is(*end))
        .filter_map(|end| status.condition(end)?.last_transition_time.as_ref());
    status
        .completion_time
        .as_ref()
        .or_else(|| ends.next())
        .map(|time| time.0)
}
