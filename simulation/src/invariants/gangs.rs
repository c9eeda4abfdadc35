//! The invariants of jobs whose pods a gang scheduler binds.

use std::collections::{BTreeMap, BTreeSet};

use kube_memory::Action;
use serde_json::Value;
use training_job::GangScheduler;

use super::CheckedChange;

use crate::world::job;
use crate::world::json::Json;
use crate::world::pod;

/// I22: Volcano has admitted the group before the first pod is created, and the group is deleted after the last pod.
pub(super) fn is_obeyed(m: &CheckedChange<'_>) -> Option<String> {
    match m.change.plural() {
        "pods" if m.creates() => is_let_in(m),
        job::GROUPS if m.change.action() == Action::Deleted && m.acts_on_child() => is_last(m),
        _ => None,
    }
}

fn is_let_in(m: &CheckedChange<'_>) -> Option<String> {
    if m.object()["spec"]["schedulerName"] != GangScheduler::Volcano.name() {
        return None;
    }
    let (uid, job_timeline) = (job::controller(m.object())?, m.owner()?);
    let since = m.earliest(m.staleness.of_others);
    if job_timeline.status_edited.is_some_and(|at| at >= since) {
        return None;
    }
    let restarts = |job: &Value| job["status"]["recovery"]["job"].as_u64().unwrap_or(0);
    let restarts = job_timeline
        .objects_since(since)
        .map(|job| restarts(job.value()))
        .min();
    // Recreated pods join the pods that exist.
    let mut children = m.timeline.children_of(Some(uid)).map(|(_, child)| child);
    let excuse = children.any(|child| match &*child.plural {
        "pods" => [child.deleted, child.ended]
            .iter()
            .flatten()
            .all(|at| *at >= since),
        job::GROUPS => {
            let of_this_attempt = restarts.is_none_or(|restarts| u64::from(child.attempt) >= restarts);
            of_this_attempt && child.let_in_until.is_some_and(|at| at >= since)
        }
        _ => false,
    });
    match excuse {
        true => None,
        false => m.violation("made before its group was let in"),
    }
}

fn is_last(m: &CheckedChange<'_>) -> Option<String> {
    let uid = job::controller(m.before())?;
    let since = m.earliest(m.staleness.of_others.max(m.staleness.of_own));
    let mut pods = m.timeline.children_of(Some(uid));
    let left = pods.find_map(|(uid_of_pod, timeline)| {
        let known = timeline.plural == "pods" && timeline.deleted.is_none() && timeline.created < since;
        let pod = known.then(|| m.view.by_uid(uid_of_pod)).flatten()?;
        let counts = job::controller(&*pod) == Some(uid) && job::is_labelled(&*pod) && !pod::has_ended(&*pod);
        counts.then_some(timeline)
    })?;
    m.violation(&format!("deleted while pod {} runs", left.name))
}

/// Returns the problem with a job's group in a settled cluster with capacity for all pods, if there is one.
pub(super) fn check_at_rest(
    job: &Value,
    scheduler: &GangScheduler,
    pods: &BTreeMap<&str, &Value>,
    group: Option<&Value>,
) -> Option<String> {
    if job::end(job).is_some() || job::is_suspended(job) {
        let calm = pods.values().all(pod::has_ended);
        // A group without its label is not in the operator's watch.
        let group = group.filter(|group| job::is_labelled(*group));
        return (group.is_some() && calm && !job::was_found_invalid(job))
            .then(|| "its group is left, though no pod runs".to_owned());
    }
    let Some(group) = group else {
        return Some("it has no group".to_owned());
    };
    let outside = match job::JobType::of(job) {
        Some(job::JobType::Steps) => job::names_of_role(job, "Database"),
        _ => BTreeSet::new(),
    };
    let is_member = |name: &String| match pods.get(&**name) {
        Some(pod) => !pod::has_ended(pod) && !outside.contains(name),
        None => false,
    };
    let names = job::names(job);
    let members = names
        .iter()
        .filter(|name| is_member(name) && !job::is_complete(job, name));
    let fewest = match scheduler {
        GangScheduler::Volcano => members.count(),
        _ => members.count().max(1),
    };
    let said = &group["spec"]["minMember"];
    if said.as_u64() != Some(fewest as u64) {
        return Some(format!("its group asks for {said} pods, and it has {fewest}"));
    }
    let restarts = job["status"]["recovery"]["job"].as_i64().unwrap_or(0);
    if *scheduler == GangScheduler::Volcano && i64::from(pod::attempt(group)) < restarts {
        return Some("its group is of an earlier attempt".to_owned());
    }
    let mut asked = names.iter().filter_map(|name| pods.get(&**name));
    let without =
        asked.find(|pod| !pod::has_ended(**pod) && pod::has_scheduler(**pod) && !pod::is_bound(**pod))?;
    Some(format!("{} has no place", without.meta("name")))
}
