//! Step 1: the job and its children, from the caches. A job of which the cache may differ from the server is read again.

use std::sync::Arc;

use kube::api::ListParams;
use kube::{Api, Resource};
use kube_follow::{CallError, Version};

use crate::job::TrainingJob;
use crate::plan::observed::Observed;

use super::answers::Answer;
use super::cache::jobs::{self, Reread};
use super::cache::list_epoch::ObjectName;
use super::cache::stored_job::StoredJob;
use super::context::Context;
use super::job_state::JobState;
use super::reconcile::JobReconciler;

/// What a reconcile starts from.
pub(super) struct Observation<J> {
    pub(super) job: Arc<StoredJob<J>>,
    pub(super) children: Arc<Observed>,
}

/// Why the cached job may differ from the server's. Nothing is done for it until it was read again: it may have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Uncertain {
    /// The server says that the job is not at this version. The watch may be dead, and the answer to an own write lost.
    NotAt(Option<String>),
    /// An own write was not answered, or a list began before the answer came.
    Unanswered,
}

impl Uncertain {
    /// What is uncertain about a job after a write of it failed.
    pub(super) fn after_error<J: TrainingJob>(error: &CallError, job: &StoredJob<J>) -> Option<Self> {
        match Answer::from(error) {
            Answer::NotFound | Answer::AlreadyExists | Answer::Conflict => {
                Some(Self::NotAt(job.meta().resource_version.clone()))
            }
            Answer::Invalid | Answer::Rejected | Answer::Denied => None,
            Answer::Unknown => Some(Self::Unanswered),
        }
    }

    /// Whether this job, taken from the cache, is still uncertain.
    fn concerns<J: TrainingJob>(&self, cached: &StoredJob<J>) -> bool {
        match self {
            Self::NotAt(version) => *version == cached.meta().resource_version,
            Self::Unanswered => true,
        }
    }
}

impl<J: TrainingJob> JobReconciler<J> {
    /// The job as it is cached, read again first if it is uncertain, and its children. None if it is gone, or another
    /// has its name now.
    ///
    /// # Errors
    /// The job is uncertain, and could not be read.
    pub(super) async fn observe(
        &self,
        context: &Context,
        cached: &Arc<StoredJob<J>>,
        state: &mut JobState,
    ) -> Result<Option<Observation<J>>, CallError> {
        let job = self.confirm(context, cached.clone(), state).await?;
        let is_same = |job: &Arc<StoredJob<J>>| jobs::uid(&**job) == jobs::uid(&**cached);
        Ok(job.filter(is_same).map(|job| Observation {
            children: context.observe(&*job),
            job,
        }))
    }

    async fn confirm(
        &self,
        context: &Context,
        mut cached: Arc<StoredJob<J>>,
        state: &mut JobState,
    ) -> Result<Option<Arc<StoredJob<J>>>, CallError> {
        let name = jobs::name(&cached);
        while state.uncertain.as_ref().is_some_and(|why| why.concerns(&cached)) {
            let epoch = self.jobs().epoch();
            let (job, version) = read_job(context, &name).await?;
            let reread = self.jobs().reread(&cached, epoch, job, version);
            match reread {
                Reread::Current(job) => {
                    state.uncertain = None;
                    cached = job;
                }
                Reread::Gone(uid) => {
                    uid.iter().for_each(|uid| self.forget(context, &name.0, uid));
                    return Ok(None);
                }
                Reread::Stale => {
                    let Some(now) = self.jobs().get(&name) else {
                        return Ok(None);
                    };
                    cached = now;
                }
            }
        }
        state.uncertain = None;
        Ok(Some(cached))
    }
}

/// The job of this name as the server has it, and the version at which that was so.
async fn read_job<J: TrainingJob>(
    context: &Context,
    (namespace, name): &ObjectName,
) -> Result<(Option<StoredJob<J>>, Version), CallError> {
    let api = Api::<StoredJob<J>>::namespaced(context.client.clone(), namespace);
    // A list has a version of its own, and needs no permission that the operator has not.
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    let list = context.timeout.call(api.list(&params)).await?;
    let version = list.metadata.resource_version.as_deref().map(Version::parse);
    Ok((list.items.into_iter().next(), version.unwrap_or_default()))
}
