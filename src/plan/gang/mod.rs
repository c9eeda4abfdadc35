//! Gang scheduling: the wanted PodGroup of a job, and whether the job's pods may be created yet.
//!
//! The group's phase decides only that. Pods are observed and judged in every phase.

mod waiting;

use jiff::SignedDuration;

use crate::api::labels;
use crate::job::{GangScheduler, JobObject, ReplicaState, Replicas, Role};
use crate::render::gang::{Members, pod_group};

use super::draft::Draft;
use super::observed::{ObjectRecord, Phase, PodRecord};
use super::recovery;

pub(super) use waiting::{notices, speaks_for};

/// The shortest and the longest pause between two notifications of a scheduler about capacity.
const MIN_NUDGE_INTERVAL: SignedDuration = SignedDuration::from_secs(1);
const MAX_NUDGE_INTERVAL: SignedDuration = SignedDuration::from_secs(300);

/// Returns the wanted PodGroup of the job, or None without a gang scheduler.
///
/// Also returns None if the existing group is from before a restart of the whole job, and the job has no pods: the
/// admission of that group ends with its last pod. If pods were created since the restart, the group is taken over
/// for them, because a restored backup has brought it back.
pub(super) fn group(draft: &Draft<'_>, replicas: &Replicas<'_>) -> Option<JobObject> {
    let job = draft.job;
    let scheduler = job.topology.settings.gang_scheduler.as_ref()?;
    let there = record(draft, scheduler);
    let is_earlier = there.is_some_and(|there| is_of_an_earlier_attempt(draft, scheduler, there));
    if is_earlier && draft.observed.pods.is_empty() {
        return None;
    }
    let mut members = Members::all(job, scheduler);
    let is_due = |role: &Role<'_>| {
        let first = job.job.starts_after(&job.topology, role);
        let first = replicas
            .roles()
            .iter()
            .filter(|r| first.contains(&r.role.class()));
        let must_be_ready = role.definition.waits_for_readiness;
        let mut states = first.flat_map(|role| &role.states);
        states.all(|state| has_started(*state, must_be_ready))
    };
    let pod_of = |host: &str| draft.observed.pods.get(host).map(|pod| &**pod);
    for of_role in &mut members {
        let states = replicas
            .role(of_role.role.name())
            .into_iter()
            .flat_map(|r| &r.states);
        let has_ended =
            |state: &ReplicaState| matches!(state, ReplicaState::Succeeded | ReplicaState::Failed);
        let left = of_role
            .role
            .all()
            .zip(states)
            .filter(|(_, state)| !has_ended(state));
        (of_role.present, of_role.asking, of_role.later) = (0, 0, 0);
        for (replica, state) in left {
            if *state == ReplicaState::Absent && !is_due(of_role.role) {
                of_role.later += 1;
            } else {
                of_role.present += 1;
                of_role.asking += u32::from(!pod_of(&replica.pod_name()).is_some_and(is_bound));
            }
        }
    }
    // A pending group with bound pods is admitted once there is capacity for its other pods. In every other phase the
    // numbers include all pods, so that they do not change with each pod.
    if there.is_none_or(|there| phase(there) != Some("Pending")) {
        members.iter_mut().for_each(|m| m.asking = m.present);
    }
    let there = there.map(|there| &there.content);
    let mut group = pod_group(job, scheduler, &members, attempt(draft), there);
    if is_earlier && has_pods_of_this_attempt(draft) {
        let annotations = group.metadata.annotations.get_or_insert_default();
        annotations.insert(labels::RESTART_ATTEMPT.to_owned(), attempt(draft).to_string());
    }
    Some(group)
}

/// Returns true if a pod exists that was created since the latest restart, has not ended and is not being deleted.
fn has_pods_of_this_attempt(draft: &Draft<'_>) -> bool {
    draft.job.topology.all().any(|replica| {
        let pod = draft.observed.pods.get(&replica.pod_name());
        let attempt = recovery::attempt(&draft.status.recovery, &replica);
        pod.is_some_and(|pod| {
            !pod.deleting && !pod.is_terminal() && !recovery::is_outdated(pod.attempt, attempt)
        })
    })
}

/// Returns true if pods must not be created before the scheduler admits the group. Once some pods exist, missing pods
/// are created immediately, because an incomplete group must not wait for capacity that its own pods hold.
pub(super) fn waits(draft: &Draft<'_>) -> bool {
    let Some(scheduler @ GangScheduler::Volcano) = &draft.job.topology.settings.gang_scheduler else {
        return false;
    };
    let topology = &draft.job.topology;
    let stays =
        |pod: &PodRecord| !pod.deleting && !pod.is_terminal() && topology.has_replica_named(&pod.name);
    if draft.observed.pods.values().any(|pod| stays(pod)) {
        return false;
    }
    let is_let_in = record(draft, scheduler).is_some_and(|group| {
        !group.deleting
            && !is_of_an_earlier_attempt(draft, scheduler, group)
            && phase(group).is_some_and(|phase| phase != "Pending")
    });
    !is_let_in
}

/// Makes the scheduler retry pods that have no node, by an annotation on their group. The annotation is written when
/// capacity was freed since it was last written. Otherwise it is written after a pause as long as the pods had waited
/// at the last write, at most five minutes. Volcano retries by itself.
pub(super) fn nudge_scheduler(draft: &mut Draft<'_>, group: Option<&mut JobObject>) {
    let Some(scheduler @ GangScheduler::Coscheduling(_)) = &draft.job.topology.settings.gang_scheduler else {
        return;
    };
    let (Some(group), Some(there)) = (group, record(draft, scheduler)) else {
        return;
    };
    let pods = draft.observed.pods.values().filter(|pod| !pod.deleting);
    let Some(since) = pods.filter_map(|pod| pod.has_no_node_since()).min() else {
        return;
    };
    draft.plan.waits_for_capacity = true;
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
    let left_at = draft.observed.capacity_freed_at.filter(|left| *left > last_nudge);
    let due = match left_at {
        Some(left) => last_nudge
            .checked_add(MIN_NUDGE_INTERVAL)
            .map(|due| due.max(left)),
        None => last_nudge.checked_add(pause),
    };
    match due {
        Ok(due) if due > draft.exact_now => draft.plan.requeue_at(due, "pods of a gang wait for capacity"),
        _ => {
            let note = (labels::CAPACITY_FREED_AT.to_owned(), draft.exact_now.to_string());
            group.metadata.annotations.get_or_insert_default().extend([note]);
        }
    }
}

fn record<'d>(draft: &Draft<'d>, scheduler: &GangScheduler) -> Option<&'d ObjectRecord> {
    let groups = draft.observed.objects.get(&scheduler.pod_group())?;
    groups.get(draft.job.topology.job).map(|group| &**group)
}

/// Returns the phase that the scheduler has set, if any.
fn phase(group: &ObjectRecord) -> Option<&str> {
    let phase = group.content["status"]["phase"].as_str();
    phase.filter(|phase| !phase.is_empty())
}

fn has_started(state: ReplicaState, must_be_ready: bool) -> bool {
    match state {
        ReplicaState::Running => !must_be_ready,
        ReplicaState::Ready | ReplicaState::Succeeded | ReplicaState::Failed => true,
        _ => false,
    }
}

/// Returns true if the pod has a node and has not ended.
fn is_bound(pod: &PodRecord) -> bool {
    match pod.phase {
        Phase::Running | Phase::Unknown => true,
        Phase::Pending => pod.scheduled,
        Phase::Succeeded | Phase::Failed => false,
    }
}

/// Returns the number of restarts of the whole job.
fn attempt(draft: &Draft<'_>) -> u32 {
    u32::try_from(draft.status.recovery.job).unwrap_or(0)
}

/// Returns true if the group was made for an attempt before the latest restart of the whole job. Volcano admits a
/// group once, so recreated pods need a new group. Coscheduling looks only at the pods, so its groups are never
/// outdated.
fn is_of_an_earlier_attempt(draft: &Draft<'_>, scheduler: &GangScheduler, group: &ObjectRecord) -> bool {
    let made_for = group.annotations.get(labels::RESTART_ATTEMPT);
    let made_for = made_for.and_then(|attempt| attempt.parse().ok()).unwrap_or(0u32);
    *scheduler == GangScheduler::Volcano && made_for < attempt(draft)
}
