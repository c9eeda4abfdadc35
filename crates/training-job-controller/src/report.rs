//! Step 5: writes the status as one merge patch of the changes, and sends the events.

use std::time::Duration;

use jiff::SignedDuration;
use kube::Resource as _;
use kube::api::{Patch, PatchParams, Request};
use kube_follow::CallError;
use serde::de::Error as _;
use serde_json::json;
use tokio::time::Instant;

use training_job::api::JobStatus;
use training_job::job::Kind;
use training_job::plan::Plan;

use super::answers::Answer;
use super::cache::stored_job::{RawJob, StoredJob};
use super::calls::Urgency;
use super::events;
use super::job_state::Uncertain;
use super::reconciler::Reconcile;
use super::steps::{Applied, StatusWrite};

/// Minimum time for which changes of counts alone are collected before they are written.
const MIN_COLLECT_COUNTS: Duration = Duration::from_secs(1);

/// The same time as a number of calls, because slow calls mean that related changes arrive more slowly.
const COLLECT_COUNTS_LATENCIES: u32 = 20;

/// The maximum, independent of recent latency, because a single slow call is not representative.
const MAX_COLLECT_COUNTS: Duration = Duration::from_secs(10);

/// Returns the resource of a kind's status, as in a role.
fn status_resource(kind: &Kind) -> String {
    format!("{}.{}/status", kind.resource.plural, kind.resource.group)
}

/// Writes the plan's status if it changed and the write is due.
///
/// # Errors
/// The call failed. The job is uncertain if the state on the server is unknown.
pub(super) async fn write_status(
    reconcile: &mut Reconcile<'_>,
    plan: &Plan,
) -> Result<StatusWrite, CallError> {
    let (context, job) = (reconcile.context, reconcile.job);
    let Some(change) = &plan.status else {
        reconcile.state.counts_changed_at = None;
        return Ok(StatusWrite::NotNeeded);
    };
    if !change.urgent && change.at_most_every.is_none() {
        let in_calls = context.calls.latency() * COLLECT_COUNTS_LATENCIES;
        let collect = in_calls.clamp(MIN_COLLECT_COUNTS, MAX_COLLECT_COUNTS);
        let due = *reconcile.state.counts_changed_at.get_or_insert_with(Instant::now) + collect;
        if Instant::now() < due {
            return Ok(StatusWrite::Deferred(due));
        }
    }
    let wait = reconcile.state.status_written_at.zip(change.at_most_every);
    if let Some((last, wait)) = wait.filter(|(last, wait)| last.elapsed() < *wait) {
        return Ok(StatusWrite::Deferred(last + wait));
    }
    if let Some(due) = reconcile.state.status_writes.due() {
        return Ok(StatusWrite::Deferred(due));
    }
    reconcile.state.status_writes.record();
    let epoch = reconcile.reconciler.jobs().epoch();
    let answer = match patch_status(reconcile, &change.status).await {
        Ok(answer) => answer,
        // The server refuses every write of an invalid job until it is edited.
        Err(error) if plan.refused && Answer::from(&error) == Answer::Invalid => {
            let (namespace, name) = (&job.meta().namespace, &job.meta().name);
            let problem = error.to_string();
            tracing::warn!(
                kind = job.kind().name(),
                namespace,
                job = name,
                problem,
                "failed to write the status of an invalid job"
            );
            return Ok(StatusWrite::Refused);
        }
        Err(error) => {
            if error.code() == Some(403) {
                let missing = &context.missing_permissions;
                missing.add("patch", &status_resource(job.kind()), &error.to_string());
            }
            reconcile.state.uncertain = Uncertain::after_error(&error, job);
            return Err(error);
        }
    };
    if context.missing_permissions.any() {
        context.missing_permissions.remove(&status_resource(job.kind()));
    }
    let changed = answer.meta().resource_version != job.meta().resource_version;
    if changed {
        let meta = job.meta();
        context.metrics.status_stored(
            job.kind().framework.name,
            meta.namespace.as_deref().unwrap_or_default(),
            meta.creation_timestamp.as_ref().map(|t| t.0),
            &reconcile.stored_status,
            &change.status,
        );
    }
    if changed && change.status.is_finished() && !reconcile.stored_status.is_finished() {
        // A job that cannot be added now is offered by the next reconcile, unless it is deleted before.
        context.offer_finished(&answer, &change.status, &context.observe(job));
    }
    if !reconcile.reconciler.jobs().answered(answer, epoch) {
        reconcile.state.uncertain = Some(Uncertain::Unanswered);
    }
    if !changed {
        return Ok(StatusWrite::Ignored);
    }
    reconcile.state.counts_changed_at = None;
    reconcile.state.status_written_at = Some(Instant::now());
    Ok(StatusWrite::Stored)
}

/// Sends the events of the completed actions, and the events of the plan that have not been sent yet.
pub(super) fn send_events(
    reconcile: &mut Reconcile<'_>,
    applied: &Applied,
    plan: &Plan,
    written: &Result<StatusWrite, CallError>,
) {
    let (context, job) = (reconcile.context, reconcile.job);
    let new = reconcile
        .state
        .new_events(applied, plan, &reconcile.stored_status, written.as_ref().ok());
    let done = events::for_applied(applied, job.framework().objects);
    let now = context.clock.now();
    let meta = job.meta();
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let name = meta.name.as_deref().unwrap_or_default();
    let ends = plan.status.as_ref().is_some_and(|s| s.status.is_finished()) && !job.status().is_finished();
    let failure = plan.status.as_ref().and_then(|s| s.status.failure.as_ref());
    for event in &new {
        events::log(
            job.kind().name(),
            namespace,
            name,
            failure.filter(|_| event.warning),
            event,
        );
    }
    for (order, event) in (0..).zip(done.iter().chain(&new)) {
        let at = now.checked_add(SignedDuration::from_nanos(order)).unwrap_or(now);
        context.recorder.record(job, event, at, ends);
    }
}

/// Patches the stored status to `next`, and returns the stored job.
///
/// The patch names the version that `next` was computed from, so it never overwrites a status that this controller
/// has not seen.
///
/// # Errors
/// Code 409 if the job has changed since; code 404 if it is gone; no code if the response is about another object.
async fn patch_status(reconcile: &Reconcile<'_>, next: &JobStatus) -> Result<StoredJob, CallError> {
    let (context, job) = (reconcile.context, reconcile.job);
    let meta = job.meta();
    let (namespace, name) = (
        meta.namespace.clone().unwrap_or_default(),
        meta.name.clone().unwrap_or_default(),
    );
    let change = job
        .status_change(&reconcile.stored_status, next, reconcile.validated.topology())
        .map_err(|e| CallError::Api(kube::Error::SerdeError(e)))?;
    let patch = json!({
        "metadata": { "resourceVersion": meta.resource_version, "uid": meta.uid },
        "status": change,
    });
    let path = RawJob::url_path(&job.kind().resource, Some(&namespace));
    let patch = Patch::Merge(patch);
    let request = Request::new(path).patch_subresource("status", &name, &PatchParams::default(), &patch);
    let request = request.map_err(|e| CallError::Api(kube::Error::BuildRequest(e)))?;
    let answer = context
        .calls
        .call(
            Urgency::Status,
            meta.uid.as_deref().unwrap_or_default(),
            0,
            context.client.request_text(request),
        )
        .await?;
    let answer = serde_json::from_str(&answer).map_err(|e| CallError::Api(kube::Error::SerdeError(e)))?;
    let answer = StoredJob::of(job.kind(), answer);
    if answer.meta().uid == meta.uid {
        Ok(answer)
    } else {
        let error = serde_json::Error::custom("the response is about another object");
        Err(CallError::Api(kube::Error::SerdeError(error)))
    }
}
