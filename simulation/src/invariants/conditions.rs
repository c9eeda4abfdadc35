//! Invariants of the conditions of a job.

use serde_json::Value;

use super::CheckedChange;
use crate::world::job;
use crate::world::json::Json;

/// I23: the transition times of the conditions with status True are strictly increasing, except that of Stalled, which is never
/// the newest. Created has the creation
/// time of the job. A job that succeeds was reported as running before.
pub(super) fn are_in_order(m: &CheckedChange<'_>) -> Option<String> {
    let (before, after) = (m.before(), m.object());
    if !m.is_job() || m.call.is_none() || m.timeline.is_edited(after.meta("uid")?.as_str()?) {
        return None;
    }
    let holds = |c: &&Value| c["status"] == "True";
    let is_stall = |c: &&Value| c["type"] == "Stalled";
    let time = |c: &'_ Value| c["lastTransitionTime"].as_str().map(str::to_owned);
    let stall = job::conditions(after).find(is_stall).and_then(time);
    let times = job::conditions(after).filter(holds).filter(|c| !is_stall(c));
    let times: Vec<_> = times.filter_map(time).collect();
    if stall.is_some_and(|stall| times.iter().max().is_none_or(|newest| stall >= *newest)) {
        return m.violation("its newest condition is Stalled");
    }
    if !times.is_sorted_by(|a, b| a < b) {
        return m.violation(&format!("its conditions are out of order: {times:?}"));
    }
    let mut conditions = job::conditions(after);
    let created = conditions.find(|c| c["type"] == "Created");
    let born = Json::meta(after, "creationTimestamp");
    let since = created.map(|created| &created["lastTransitionTime"]);
    if since.is_some_and(|since| !since.is_null() && since != born) {
        return m.violation(&format!("it was created at {born}"));
    }
    let succeeds = job::end(after) == Some("Succeeded") && job::end(before).is_none() && !times.is_empty();
    (succeeds && !job::is(before, "Running"))
        .then(|| m.violation("it was not shown to run before it succeeded"))
        .flatten()
}
