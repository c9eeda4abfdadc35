//! The invariants of jobs whose output is watched.

use kube_memory::{Action, Object};
use serde_json::Value;

use super::CheckedChange;
use crate::world::job;

/// I27: a job is reported, restarted or failed as stalled only if the replica that the status names has made no progress
/// for the limit of the job.
pub(super) fn are_true(m: &CheckedChange<'_>) -> Option<String> {
    if !m.is_job() || m.change.action() != Action::Modified || m.call.is_none() {
        return None;
    }
    let (before, after) = (m.before(), m.object());
    let pod = stalled_pod(after).filter(|pod| stalled_pod(before).as_ref() != Some(pod))?;
    let progress = job::policy(after, "progress");
    let limit = progress["stalledAfterSeconds"].as_u64()?;
    let pods = m.view.list("pods", None);
    let stored = pods
        .iter()
        .find(|stored| stored.meta("name") == Some(&Value::from(pod.as_str())))?;
    let uid = stored.meta("uid")?.as_str()?;
    let silent = m.outputs.silent_for(uid, progress["pattern"].is_null(), m.now)?;
    (silent < 1_000 * limit)
        .then(|| m.violation(&format!("{pod} is not stalled: it printed {silent} ms ago")))?
}

/// Returns the pod that a status names as stalled.
fn stalled_pod(job: &Object) -> Option<String> {
    let stalled = job::conditions(job).find(|c| c["type"] == "Stalled" && c["status"] == "True");
    let of_condition = stalled.and_then(|c| {
        let (_, why) = c["message"].as_str()?.split_once(" is stalled: ")?;
        why.split(' ').next()
    });
    let failure = &job["status"]["failure"];
    let of_failure = failure["pod"].as_str().filter(|_| failure["reason"] == "Stalled");
    of_condition.or(of_failure).map(str::to_owned)
}
