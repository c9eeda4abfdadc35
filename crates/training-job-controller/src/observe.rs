//! Step 1: reads the job and its children from the caches. A job whose cached copy may be outdated is read again.

use std::sync::Arc;

use kube::Api;
use kube::api::ListParams;
use kube_follow::{CallError, Version};

use training_job::job::Kind;

use super::cache::jobs::{self, Reread};
use super::cache::list_epoch::ObjectName;
use super::cache::stored_job::{RawJob, StoredJob};
use super::context::Context;
use super::job_state::JobState;
use super::reconciler::JobReconciler;
use super::steps::Observation;

/// Returns the cached job and its children. An uncertain job is read again first. Returns `None` if the job is
/// gone or another job has its name.
///
/// # Errors
/// The job is uncertain, and reading it failed.
pub(super) async fn observe(
    reconciler: &JobReconciler,
    context: &Context,
    cached: &Arc<StoredJob>,
    state: &mut JobState,
) -> Result<Option<Observation>, CallError> {
    let job = confirm(reconciler, context, cached.clone(), state).await?;
    let is_same = |job: &Arc<StoredJob>| jobs::uid(job.meta()) == jobs::uid(cached.meta());
    Ok(job.filter(is_same).map(|job| Observation {
        children: context.observe(&job),
        job,
    }))
}

async fn confirm(
    reconciler: &JobReconciler,
    context: &Context,
    mut cached: Arc<StoredJob>,
    state: &mut JobState,
) -> Result<Option<Arc<StoredJob>>, CallError> {
    let name = jobs::name(cached.meta());
    while state
        .uncertain
        .as_ref()
        .is_some_and(|why| why.still_applies(&cached))
    {
        let epoch = reconciler.jobs().epoch();
        let (job, version) = read_job(context, &reconciler.kind, &name).await?;
        let reread = reconciler.jobs().reread(&cached, epoch, job, version);
        match reread {
            Reread::Current(job) => {
                state.uncertain = None;
                cached = job;
            }
            Reread::Gone(uid) => {
                uid.iter()
                    .for_each(|uid| reconciler.forget(context, &name.0, uid));
                return Ok(None);
            }
            Reread::Stale => {
                let Some(now) = reconciler.jobs().get(&name) else {
                    return Ok(None);
                };
                cached = now;
            }
        }
    }
    state.uncertain = None;
    Ok(Some(cached))
}

/// Returns the job of this name from the server, if it exists, and the version of that state.
async fn read_job(
    context: &Context,
    kind: &Arc<Kind>,
    (namespace, name): &ObjectName,
) -> Result<(Option<StoredJob>, Version), CallError> {
    let resource = &kind.resource;
    let api = Api::<RawJob>::namespaced_with(context.client.clone(), namespace, resource);
    // A list has a version of its own, and needs no permission that the operator lacks.
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    let list = context.timeout.call(api.list(&params)).await?;
    let version = list.metadata.resource_version.as_deref().map(Version::parse);
    let job = list.items.into_iter().next();
    let job = job.map(|job| StoredJob::of(kind, job));
    Ok((job, version.unwrap_or_default()))
}
