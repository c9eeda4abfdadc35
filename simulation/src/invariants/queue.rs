//! The invariants of jobs that a queue admits and evicts.

use kube_memory::{Action, Object};
use serde_json::Value;
use training_job::api::labels;

use super::CheckedChange;
use crate::job::{self, Json};

/// I21: a pod of a queued job has the node selector of an admission, no restart is counted while the job is suspended, and its
/// pods are counted as active until they are gone.
pub(super) fn is_obeyed(m: &CheckedChange<'_>) -> Option<String> {
    m.call?;
    if m.is_job() && m.change.action() == Action::Modified {
        return evicted_honestly(m);
    }
    if m.change.plural() != "pods" || !m.creates() {
        return None;
    }
    let life = m.owner()?;
    let mut seen = life.objects_since(m.earliest(m.staleness.of_others));
    let is_queued = life.latest().is_some_and(is_queued);
    let selector = &m.object()["spec"]["nodeSelector"];
    let fits = |job: &Object| !job::is_suspended(job) && has_selector(job, selector);
    match !is_queued || seen.any(fits) {
        true => None,
        false => m.violation("it has not the node selector of an admission"),
    }
}

fn evicted_honestly(m: &CheckedChange<'_>) -> Option<String> {
    let (before, after) = (m.before(), m.object());
    let uid = after.meta("uid")?.as_str()?;
    let life = m.timeline.jobs.get(uid)?;
    let since = m.earliest(m.staleness.of_others);
    let suspended = life.objects_since(since).all(job::is_suspended);
    if !is_queued(after) || !suspended || life.status_edited.is_some() || job::end(after).is_some() {
        return None;
    }
    let restarts = |job: &Object| job["status"]["restartCount"].as_i64().unwrap_or(0);
    if restarts(after) > restarts(before) {
        return m.violation("a restart was counted while it was suspended");
    }
    let roles = after["status"]["replicaStatuses"].as_object();
    let active: i64 = roles
        .into_iter()
        .flat_map(|roles| roles.values())
        .filter_map(|role| role["active"].as_i64())
        .sum();
    let mut pods = m.timeline.children_of(Some(uid));
    let left = pods.find(|(child, life)| {
        let known = life.plural == "pods" && life.deleted.is_none() && life.created < since;
        let pod = known.then(|| m.view.by_uid(child)).flatten();
        pod.is_some_and(|pod| job::controller(&*pod) == Some(uid) && !job::has_ended(&*pod))
    });
    match left {
        Some((_, pod)) if active == 0 && job::is(after, "Suspended") => {
            m.violation(&format!("no pod is told to be active, and {} is there", pod.name))
        }
        _ => None,
    }
}

fn is_queued(job: &Object) -> bool {
    Json::meta(job, "labels")[labels::QUEUE_NAME].is_string()
}

fn has_selector(job: &Object, selector: &Value) -> bool {
    let Some(job_type) = job::JobType::of(job) else {
        return false;
    };
    let roles = job["spec"][job_type.replica_specs_field()].as_object();
    let mut roles = roles.into_iter().flat_map(|roles| roles.values());
    // An empty one is left out of pods.
    let labels = |selector: &Value| selector.as_object().cloned().unwrap_or_default();
    roles.any(|role| labels(&role["template"]["spec"]["nodeSelector"]) == labels(selector))
}
