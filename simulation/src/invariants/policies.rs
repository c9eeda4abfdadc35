//! The invariant of a job's own policies.

use kube_memory::{Action, Object};
use serde_json::json;

use super::CheckedChange;
use crate::job;

/// I20: no more restarts are counted than a failure policy allows, none of failures that it ignores, and no success is told
/// but that of the replicas that a success policy names.
pub(super) fn are_kept(m: &CheckedChange<'_>) -> Option<String> {
    if !m.is_job() || m.change.action() != Action::Modified || m.call.is_none() {
        return None;
    }
    let (before, after) = (m.before(), m.object());
    let uid = after.meta("uid")?.as_str()?;
    let life = m.timeline.jobs.get(uid)?;
    if life.status_edited.is_some() {
        return None;
    }
    let policy = &after["spec"]["runPolicy"];
    let restarts = |job: &Object| job["status"]["restartCount"].as_i64().unwrap_or(0);
    let failure = &policy["failurePolicy"];
    if restarts(after) > restarts(before) {
        let ignores_all = failure["rules"][0] == json!({"action": "Ignore"});
        // The kubelets here restart containers of pods that say `Never`, too.
        let in_place = |job: &Object| job["status"]["recovery"]["inPlace"].clone();
        if ignores_all && in_place(before) == in_place(after) {
            return m.violation("a restart that its failure policy ignores was counted");
        }
        let limit = failure["maxRestarts"].as_i64();
        // One that a kubelet made has happened when the job fails for it.
        let has_ended = !failure["windowSeconds"].is_null() || job::end(after) == Some("Failed");
        let limit = limit.filter(|_| !has_ended);
        if let Some(limit) = limit.filter(|limit| restarts(after) > *limit) {
            return m.violation(&format!("restarted more often than maxRestarts {limit}"));
        }
    }
    let success = &policy["successPolicy"];
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
