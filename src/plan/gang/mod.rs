//! Gang scheduling: the wanted PodGroup of a job, and whether the job's pods may be created yet.
//!
//! The group's phase decides only that. Pods are observed and judged in every phase.

mod waiting;

use jiff::SignedDuration;

use crate::api::{JobStatus, labels};
use crate::job::{GangScheduler, JobObject, ReplicaState};
use crate::render::gang::{Members, pod_group, runs_with_others};

use super::facts::Facts;
use super::observed::{ObjectRecord, Phase, PodRecord};
use super::recovery;
use super::survey::{ObservedReplica, Situation, Survey};
use super::types::Plan;

pub(super) use waiting::{notices, speaks_for};

/// The shortest and the longest pause between two notifications of a scheduler about capacity.
const MIN_NUDGE_INTERVAL: SignedDuration = SignedDuration::from_secs(1);
const MAX_NUDGE_INTERVAL: SignedDuration = SignedDuration::from_secs(300);

/// The key and the value of an annotation.
type Annotation = (String, String);

/// Returns the wanted PodGroup of the job, or None without a gang scheduler.
///
/// Also returns None if the existing group is from before a restart of the whole job, and the job has no pods but
/// succeeded ones: the admission of that group ends with its last pod. If pods were created since the restart, the group
/// is taken over for them, because a restored backup has brought it back. `nudge` is the annotation that notifies the
/// scheduler.
pub(super) fn group(facts: &Facts<'_>, survey: &Survey<'_>, nudge: Option<Annotation>) -> Option<JobObject> {
    let job = facts.job;
    let scheduler = job.topology.settings.gang_scheduler.as_ref()?;
    let there = record(facts, scheduler);
    let is_earlier = there.is_some_and(|there| is_of_an_earlier_attempt(survey.attempt, scheduler, there));
    // The pods of a step that is done outlast the restart.
    let is_done = |pod: &PodRecord| pod.phase == Phase::Succeeded && !pod.deleting;
    if is_earlier && facts.observed.pods.values().all(|pod| is_done(pod)) {
        return None;
    }
    let is_pending = there.and_then(phase) == Some("Pending");
    let mut members = Members::all(job, scheduler);
    for of_role in &mut members {
        let name = of_role.role.name();
        let roles = survey.roles.iter().filter(|r| r.role.name() == name);
        let replicas = roles.flat_map(|r| &r.replicas);
        let states = survey.states.role(name).into_iter().flat_map(|r| &r.states);
        let has_ended =
            |state: &ReplicaState| matches!(state, ReplicaState::Succeeded | ReplicaState::Failed);
        let left = replicas.zip(states).filter(|(_, state)| !has_ended(state));
        (of_role.present, of_role.asking, of_role.later) = (0, 0, 0);
        let is_due = survey.is_due(job, of_role.role);
        let runs_with_others = runs_with_others(job, of_role.role);
        for (replica, state) in left {
            if *state == ReplicaState::Absent && !is_due {
                of_role.later += u32::from(runs_with_others);
            } else {
                of_role.present += 1;
                of_role.asking += u32::from(!replica.pod.is_some_and(is_bound));
            }
        }
    }
    // A pending group with bound pods is admitted once there is capacity for its other pods. In every other phase the
    // numbers include all pods, so that they do not change with each pod.
    if !is_pending {
        members.iter_mut().for_each(|m| m.asking = m.present);
    }
    let there = there.map(|there| &*there.content);
    let mut group = pod_group(job, scheduler, &members, survey.attempt, there);
    let is_taken_over = is_earlier && survey.replicas().any(has_pod_of_this_attempt);
    let attempt = || (labels::RESTART_ATTEMPT.to_owned(), survey.attempt.to_string());
    for (key, value) in is_taken_over.then(attempt).into_iter().chain(nudge) {
        let annotations = group.metadata.annotations.get_or_insert_default();
        annotations.insert(key, value);
    }
    Some(group)
}

/// Returns true if a pod exists that was created since the latest restart, has not ended and is not being deleted.
fn has_pod_of_this_attempt(replica: &ObservedReplica<'_>) -> bool {
    let is_outdated = matches!(replica.situation, Situation::Outdated);
    let stays = |pod: &PodRecord| !pod.deleting && !pod.is_terminal() && !is_outdated;
    replica.pod.is_some_and(stays)
}

/// Returns true if pods must not be created before the scheduler admits the group. Once some pods exist, missing pods
/// are created immediately, because an incomplete group must not wait for capacity that its own pods hold.
pub(super) fn waits(facts: &Facts<'_>, status: &JobStatus) -> bool {
    let topology = &facts.job.topology;
    let Some(scheduler @ GangScheduler::Volcano) = &topology.settings.gang_scheduler else {
        return false;
    };
    let stays =
        |pod: &PodRecord| !pod.deleting && !pod.is_terminal() && topology.has_replica_named(&pod.name);
    if facts.observed.pods.values().any(|pod| stays(pod)) {
        return false;
    }
    let attempt = recovery::attempt_of_job(&status.recovery);
    let is_let_in = record(facts, scheduler).is_some_and(|group| {
        !group.deleting
            && !is_of_an_earlier_attempt(attempt, scheduler, group)
            && phase(group).is_some_and(|phase| phase != "Pending")
    });
    !is_let_in
}

/// Returns the annotation on the group that makes the scheduler retry pods that have no node, if it is due, or else the
/// plan to wait for it. It is due when capacity was freed since it was last written. Otherwise it is due after a pause as
/// long as the pods had waited at the last write, at most five minutes. Volcano retries by itself.
pub(super) fn nudge_scheduler(facts: &Facts<'_>) -> (Plan, Option<Annotation>) {
    let (job, observed, exact_now) = (facts.job, facts.observed, facts.exact_now);
    let coscheduling = job.topology.settings.gang_scheduler.as_ref();
    let coscheduling = coscheduling.filter(|s| matches!(s, GangScheduler::Coscheduling(_)));
    let there = coscheduling.and_then(|scheduler| record(facts, scheduler));
    let pods = observed.pods.values().filter(|pod| !pod.deleting);
    let since = pods.filter_map(|pod| pod.has_no_node_since()).min();
    let Some((there, since)) = there.zip(since) else {
        return (Plan::default(), None);
    };
    let annotations = &there.annotations;
    let last_nudge = annotations.get(labels::CAPACITY_FREED_AT);
    let last_nudge = last_nudge.or_else(|| annotations.get(labels::FORMER_CAPACITY_FREED_AT));
    let last_nudge = last_nudge
        .and_then(|at| at.parse().ok())
        .unwrap_or(since)
        .max(since);
    let pause = last_nudge
        .duration_since(since)
        .clamp(MIN_NUDGE_INTERVAL, MAX_NUDGE_INTERVAL);
    let left_at = observed.capacity_freed_at.filter(|left| *left > last_nudge);
    let due = match left_at {
        Some(left) => last_nudge
            .checked_add(MIN_NUDGE_INTERVAL)
            .map(|due| due.max(left)),
        None => last_nudge.checked_add(pause),
    };
    let wait = due.ok().filter(|due| *due > exact_now);
    let wait = wait.map(|due| Plan::wait(due, "pods of a gang wait for capacity"));
    let nudge = || (labels::CAPACITY_FREED_AT.to_owned(), exact_now.to_string());
    let nudge = wait.is_none().then(nudge);
    let plan = Plan {
        waits_for_capacity: true,
        ..wait.unwrap_or_default()
    };
    (plan, nudge)
}

fn record<'a>(facts: &Facts<'a>, scheduler: &GangScheduler) -> Option<&'a ObjectRecord> {
    let groups = facts.observed.objects.get(&scheduler.pod_group())?;
    groups.get(facts.job.topology.job).map(|group| &**group)
}

/// Returns the phase that the scheduler has set, if any.
fn phase(group: &ObjectRecord) -> Option<&str> {
    let phase = group.content["status"]["phase"].as_str();
    phase.filter(|phase| !phase.is_empty())
}

/// Returns true if the pod has a node and has not ended.
fn is_bound(pod: &PodRecord) -> bool {
    match pod.phase {
        Phase::Running | Phase::Unknown => true,
        Phase::Pending => pod.scheduled,
        Phase::Succeeded | Phase::Failed => false,
    }
}

/// Returns true if the group was made for an attempt before the latest restart of the whole job. Volcano admits a
/// group once, so recreated pods need a new group. Coscheduling looks only at the pods, so its groups are never
/// outdated.
fn is_of_an_earlier_attempt(attempt: u32, scheduler: &GangScheduler, group: &ObjectRecord) -> bool {
    let made_for = group.annotations.get(labels::RESTART_ATTEMPT);
    let made_for = made_for.and_then(|attempt| attempt.parse().ok()).unwrap_or(0u32);
    *scheduler == GangScheduler::Volcano && made_for < attempt
}
