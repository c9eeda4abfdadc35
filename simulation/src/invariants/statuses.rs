//! The invariants of the statuses of jobs.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kube_memory::{Action, Object};
use serde_json::Value;

use super::CheckedChange;
use crate::world::job;
use crate::world::json::Json;

/// I3: a finished job stays finished, and keeps its completion time. A job that failed because of an invalid spec may
/// run again.
pub(super) fn final_is_final(m: &CheckedChange<'_>) -> Option<String> {
    if !m.is_job() || m.change.action() != Action::Modified {
        return None;
    }
    // Users may edit a status, and the operator trusts the edit.
    m.call?;
    let (before, after) = (m.before(), m.object());
    let end = job::end(before)?;
    if job::was_found_invalid(before) {
        return None;
    }
    if job::end(after) != Some(end) {
        return m.violation(&format!("{end} was taken back"));
    }
    let time = |job: &Object| job["status"]["completionTime"].clone();
    (is_time(&time(before)) && time(before) != time(after))
        .then(|| m.violation("its completion time changed"))
        .flatten()
}

/// The highest plausible count of restarts. A higher count was not written by an operator.
const MAX_PLAUSIBLE_RESTARTS: i64 = 500_000_000;

/// Returns true for a time that an operator may have written.
fn is_time(value: &Value) -> bool {
    let text = value.as_str().filter(|text| *text < "9000");
    text.is_some_and(|text| text.parse::<Timestamp>().is_ok())
}

/// I10: the count of restarts never falls. The start time changes only when a job is resumed or made valid, or when a
/// gang scheduler admits the job for the first time.
pub(super) fn honest_counters(m: &CheckedChange<'_>) -> Option<String> {
    if !m.is_job() || m.change.action() != Action::Modified || m.call.is_none() {
        return None;
    }
    let (before, after) = (m.before(), m.object());
    let restarts = |job: &Object| job["status"]["restartCount"].as_i64().unwrap_or(0);
    if restarts(before) <= MAX_PLAUSIBLE_RESTARTS && restarts(after) < restarts(before) {
        return m.violation("the count of restarts fell");
    }
    let start = |job: &Object| job["status"]["startTime"].clone();
    let resumed = job::is(before, "Suspended") || job::was_found_invalid(before);
    let counts = before["status"]["replicaStatuses"].as_object();
    // The counts are written when the job is first admitted.
    let waited = counts.is_none_or(serde_json::Map::is_empty);
    (is_time(&start(before)) && start(before) != start(after) && !resumed && !waited)
        .then(|| m.violation("its start time changed"))
        .flatten()
}

/// I10: condition types are unique, conditions do not contradict each other, and the counts are at most the number of
/// replicas in a spec.
pub(super) fn honest_conditions(m: &CheckedChange<'_>) -> Option<String> {
    if !m.is_job() || m.change.action() == Action::Deleted || m.call.is_none() {
        return None;
    }
    let job = m.object();
    let types: Vec<_> = job::conditions(job).map(|c| c["type"].as_str()).collect();
    if types.iter().collect::<BTreeSet<_>>().len() < types.len() {
        return m.violation("a condition is there twice");
    }
    let is = |condition| job::is(job, condition);
    let pairs = [
        ("Succeeded", "Failed"),
        ("Running", "Succeeded"),
        ("Running", "Failed"),
        ("Running", "Suspended"),
        ("Running", "Restarting"),
    ];
    if let Some((a, b)) = pairs.into_iter().find(|(a, b)| is(a) && is(b)) {
        return m.violation(&format!("it is {a} and {b}"));
    }
    if job::end(job).is_some() && m.staleness.of_own > 0 {
        // One operator counts pods that have ended by then. The other operator counts those that still run in its
        // caches.
        return None;
    }
    let job_timeline = m
        .timeline
        .jobs
        .get(Json::meta(job, "uid").as_str().unwrap_or_default())?;
    // A finished job keeps the counts of its end, even if its spec changes.
    let from = if job::end(job).is_some() {
        0
    } else {
        m.earliest(m.staleness.of_others)
    };
    let most = |role: &str| {
        let versions = job_timeline.versions_since(from).iter();
        versions.filter_map(|v| v.replicas(role)).max().unwrap_or(0)
    };
    let statuses = job["status"]["replicaStatuses"].as_object()?;
    let parts = |status: &Value| {
        ["active", "succeeded", "failed"].map(|part| status[part].as_i64().unwrap_or(0).max(0))
    };
    let sum = |status: &Value| -> i64 { parts(status).iter().sum() };
    let before = &m.before()["status"]["replicaStatuses"];
    // A count that a user wrote into the status of a finished job stays.
    let grows = |role: &str, status: &Value| {
        let mut pairs = parts(&before[role]).into_iter().zip(parts(status));
        pairs.any(|(old, new)| new > old)
    };
    let mut changed = statuses.iter().filter(|(role, status)| grows(role, status));
    // A suspended job counts all remaining pods, including those beyond a reduced number of replicas.
    let (role, status) =
        changed.find(|(role, status)| !job::is(job, "Suspended") && sum(status) > most(role))?;
    m.violation(&format!("more {role} replicas than there are: {status}"))
}

/// I10: the status reports a replica or the job as succeeded only if a pod succeeded. A pod that was removed did not
/// succeed, whatever its exit code.
pub(super) fn honest_successes(m: &CheckedChange<'_>) -> Option<String> {
    if !m.is_job() || m.change.action() != Action::Modified || m.call.is_none() {
        return None;
    }
    let (before, after) = (m.before(), m.object());
    let uid = after.meta("uid")?.as_str()?;
    if before["status"]["recovery"]["completed"] != after["status"]["recovery"]["completed"] {
        let known = m.timeline.successes(uid);
        let newly_complete =
            |name: &&String| job::is_complete(after, name) && !job::is_complete(before, name);
        let names = job::names(after);
        if let Some(name) = names
            .iter()
            .filter(newly_complete)
            .find(|n| !known.contains(n.as_str()))
        {
            return m.violation(&format!("{name} never succeeded"));
        }
    }
    let ends = job::end(after) == Some("Succeeded") && job::end(before).is_none();
    // The operator trusts edits of a status by users.
    let edited = || m.timeline.is_edited(uid);
    let known = m.timeline.successes(uid);
    let remembers = after["status"]["recovery"]["completed"].is_object();
    let is_success =
        |name: &String| known.contains(name.as_str()) && (!remembers || job::is_complete(after, name));
    (ends && !job::names(after).iter().any(is_success) && !edited())
        .then(|| m.violation("none of its replicas has succeeded"))
        .flatten()
}
