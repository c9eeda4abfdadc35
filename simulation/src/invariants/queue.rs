//! The invariant of jobs that a queue admits and evicts.

use kube_memory::{Action, Object};
use serde_json::Value;
use training_job::api::labels;

use super::CheckedChange;
use crate::world::job;
use crate::world::json::Json;
use crate::world::pod;

/// I21: a pod of a queued job has the node selector of an admission. No restart is counted while the job is
/// suspended. The status reports the job as active from before its pods are created until they are gone.
pub(super) fn is_obeyed(m: &CheckedChange<'_>) -> Option<String> {
    m.call?;
    if m.is_job() && m.change.action() == Action::Modified {
        return evicted_honestly(m);
    }
    if m.change.plural() != "pods" || !m.creates() {
        return None;
    }
    let job_timeline = m.owner()?;
    let seen = job_timeline.objects_since(m.earliest(m.staleness.of_others));
    let is_queued = job_timeline.latest().is_some_and(is_queued);
    if !is_queued {
        return None;
    }
    let selector = &m.object()["spec"]["nodeSelector"];
    let admits = |job: &&Object| !job::is_suspended(*job) && has_selector(job, selector);
    let admitted: Vec<_> = seen.filter(|job| admits(&&**job)).collect();
    if admitted.is_empty() {
        return m.violation("it has not the node selector of an admission");
    }
    // The job may have been added to the queue with existing pods.
    let is_told = |job: &Object| !self::is_queued(job) || active(job) > 0;
    match job_timeline.status_edited.is_some() || admitted.iter().any(|job| is_told(job)) {
        true => None,
        false => m.violation("made before the queue was told that its job is active"),
    }
}

/// Returns the number of replicas that the status reports as active.
fn active(job: &Object) -> i64 {
    let roles = job["status"]["replicaStatuses"].as_object().into_iter();
    let roles = roles.flat_map(|roles| roles.values());
    roles.filter_map(|role| role["active"].as_i64()).sum()
}

fn evicted_honestly(m: &CheckedChange<'_>) -> Option<String> {
    let (before, after) = (m.before(), m.object());
    let uid = after.meta("uid")?.as_str()?;
    let job_timeline = m.timeline.jobs.get(uid)?;
    let since = m.earliest(m.staleness.of_others);
    let suspended = job_timeline.objects_since(since).all(job::is_suspended);
    if !is_queued(after) || !suspended || job_timeline.status_edited.is_some() || job::end(after).is_some() {
        return None;
    }
    let restarts = |job: &Object| job["status"]["restartCount"].as_i64().unwrap_or(0);
    if restarts(after) > restarts(before) {
        return m.violation("a restart was counted while it was suspended");
    }
    let mut pods = m.timeline.children_of(Some(uid));
    let left = pods.find(|(uid_of_pod, timeline)| {
        let known = timeline.plural == "pods" && timeline.deleted.is_none() && timeline.created < since;
        let pod = known.then(|| m.view.by_uid(uid_of_pod)).flatten();
        pod.is_some_and(|pod| job::controller(&*pod) == Some(uid) && !pod::has_ended(&*pod))
    });
    match left {
        Some((_, pod)) if active(after) == 0 && job::is(after, "Suspended") => {
            m.violation(&format!("no pod is told to be active, and {} is there", pod.name))
        }
        _ => None,
    }
}

pub(super) fn is_queued(job: &impl Json) -> bool {
    Json::meta(job, "labels")[labels::QUEUE_NAME].is_string()
}

fn has_selector(job: &Object, selector: &Value) -> bool {
    // Pods omit an empty selector.
    let labels = |selector: &Value| selector.as_object().cloned().unwrap_or_default();
    let mut templates = job::templates(job).into_iter();
    templates.any(|template| labels(&template["spec"]["nodeSelector"]) == labels(selector))
}
