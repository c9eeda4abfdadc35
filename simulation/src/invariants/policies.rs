//! The invariants of failure and success policies, and of restarts for lost pods.

use kube_memory::{Action, Object};
use serde_json::json;

use super::CheckedChange;
use crate::world::{job, pod};

/// The uncounted restarts of a role in an hour that StepJobs allow. No run is longer.
const MAX_UNCOUNTED: usize = 2;

/// I20: no more restarts are counted than a failure policy allows, and no restarts for failures that it ignores. A
/// success is reported only for the replicas that a success policy names.
pub(super) fn are_kept(m: &CheckedChange<'_>) -> Option<String> {
    if !m.is_job() || m.change.action() != Action::Modified || m.call.is_none() {
        return None;
    }
    let (before, after) = (m.before(), m.object());
    let uid = after.meta("uid")?.as_str()?;
    let job_timeline = m.timeline.jobs.get(uid)?;
    if job_timeline.status_edited.is_some() {
        return None;
    }
    let restarts = |job: &Object| job["status"]["restartCount"].as_i64().unwrap_or(0);
    let failure = job::policy(after, "failurePolicy");
    if restarts(after) > restarts(before) {
        let ignores_all = failure["rules"][0] == json!({"action": "Ignore"});
        // The simulated kubelets also restart containers of pods with restart policy `Never`. A restart of the job removes
        // the record of those that it counts.
        let in_place = |job: &Object| job["status"]["recovery"]["inPlace"].clone();
        let pods = m.view.list("pods", None);
        let mut of_job = pods.iter().filter(|pod| job::controller(&***pod) == Some(uid));
        let by_kubelets = in_place(before) != in_place(after);
        // A stall is not a failure of a replica: `onStall` alone selects its consequence.
        let is_stall = after["status"]["failure"]["reason"] == "Stalled";
        if ignores_all && !is_stall && !by_kubelets && !of_job.any(|pod| pod::has_restarted(&**pod)) {
            return m.violation("a restart that its failure policy ignores was counted");
        }
        let limit = failure["maxRestarts"].as_i64();
        // Restarts by kubelets have already happened when they are counted.
        let limit = limit.filter(|_| failure["windowSeconds"].is_null() && !by_kubelets);
        if let Some(limit) = limit.filter(|limit| restarts(after) > *limit) {
            return m.violation(&format!("restarted more often than maxRestarts {limit}"));
        }
    }
    let uncounted = after["status"]["recovery"]["uncounted"].as_object();
    let mut of_roles = uncounted.into_iter().flat_map(|roles| roles.values());
    if of_roles.any(|times| times.as_array().is_some_and(|all| all.len() > MAX_UNCOUNTED)) {
        return m.violation("restarted more often without counting than its kind allows in an hour");
    }
    let success = job::policy(after, "successPolicy");
    let ends = job::end(after) == Some("Succeeded") && job::end(before).is_none();
    if success.is_object() && ends {
        let roles = job::roles(after).into_keys();
        let named = success["roles"].as_array();
        let decides = |role: &String| named.is_none_or(|named| named.iter().any(|n| n == role.as_str()));
        let deciding = roles
            .filter(decides)
            .flat_map(|role| job::names_of_role(after, &role));
        let known = m.timeline.successes(uid);
        let mut succeeded = deciding.map(|name| known.contains(&*name));
        let is_success = match success["operator"] == "Any" {
            true => succeeded.any(|one| one),
            false => succeeded.all(|one| one),
        };
        if !is_success {
            return m.violation("it has not succeeded by its success policy");
        }
    }
    None
}

/// I25: no restart is counted for the loss of a pod that exists and that the job controls, whatever its labels are.
pub(super) fn no_healthy_pod_is_lost(m: &CheckedChange<'_>) -> Option<String> {
    if !m.is_job() || m.change.action() != Action::Modified || m.call.is_none() {
        return None;
    }
    let (before, after) = (m.before(), m.object());
    let uid = after.meta("uid")?.as_str()?;
    let failure = &after["status"]["failure"];
    // The record of a pod that is being deleted has a time or a node.
    let is_lost = failure["reason"] == "PodDeleted" && failure["time"].is_null() && failure["node"].is_null();
    let name = failure["pod"].as_str()?;
    let count = |job: &Object| job["status"]["restartCount"].as_i64().unwrap_or(0);
    // A restart of a container counts without a new attempt, and one for a new size is not counted. Both keep the record.
    let attempt = |job: &Object| job::attempt(job, name);
    if !is_lost || count(after) <= count(before) || attempt(after) <= attempt(before) {
        return None;
    }
    let since = m.earliest(m.staleness.of_own);
    let mut children = m.timeline.children_of(Some(uid));
    let is_there = children.any(|(_, child)| {
        let of_job = child.plural == "pods" && child.owner.as_deref() == Some(uid);
        let exists = child.created <= since && child.deleted.is_none() && child.orphaned.is_none();
        of_job && child.name == name && exists
    });
    is_there.then(|| m.violation(&format!("restarted because {name} was lost, and it exists")))?
}
