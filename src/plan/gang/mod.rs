//! A job whose pods a gang scheduler binds together: what its PodGroup is to say, and whether pods may be made yet.
//!
//! The group's phase decides nothing but that. What pods do is seen and judged whatever the phase is.

mod waiting;

use jiff::SignedDuration;

use crate::api::labels;
use crate::job::{GangScheduler, JobObject, ReplicaState, Replicas, Role, TrainingJob};
use crate::render::gang::{Members, pod_group};

use super::draft::Draft;
use super::observed::{ObjectRecord, Phase, PodRecord};

pub(super) use waiting::{notices, speaks_for};

/// How long a scheduler is left alone between two notes that there may be room.
const SHORTEST_PAUSE: SignedDuration = SignedDuration::from_secs(1);
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(300);

/// The job's PodGroup as it is to be; none if there is no gang scheduler, or if the one that is there is from before a
/// restart of the whole job, whose turn is over with its last pod.
pub(super) fn group<J: TrainingJob>(draft: &Draft<'_, J>, replicas: &Replicas<'_>) -> Option<JobObject> {
    let job = draft.job;
    let scheduler = job.topology.settings.gang_scheduler.as_ref()?;
    let there = record(draft, scheduler);
    if there.is_some_and(|there| is_of_an_earlier_attempt(draft, scheduler, there))
        && draft.observed.pods.is_empty()
    {
        return None;
    }
    let mut members = Members::all(job, scheduler);
    let is_due = |role: &Role<'_>| {
        let first = job.job.starts_after(&job.topology, role).iter();
        let first = first.filter_map(|name| replicas.role(name));
        first.flat_map(|role| &role.states).all(has_started)
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
                of_role.asking += u32::from(!pod_of(&replica.host()).is_some_and(is_bound));
            }
        }
    }
    // A group that waits again although some of its pods have their places is let in if there is room for the others; at any
    // other time the numbers are those of all, so that they do not change with each pod.
    if there.is_none_or(|there| phase(there) != Some("Pending")) {
        members.iter_mut().for_each(|m| m.asking = m.present);
    }
    let there = there.map(|there| &there.content);
    Some(pod_group(job, scheduler, &members, attempt(draft), there))
}

/// Whether pods are not to be made before the scheduler has let the group in. Once some are there, those that are missing
/// are made at once: a group that is broken must not wait for room that its own pods hold.
pub(super) fn waits<J: TrainingJob>(draft: &Draft<'_, J>) -> bool {
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

/// Has the scheduler look at pods again that have found no node, by a note on their group: when room was left since it
/// was last told, and else after twice the time that they had waited then, or five minutes. Volcano looks by itself.
pub(super) fn tell_of_room<J: TrainingJob>(draft: &mut Draft<'_, J>, group: Option<&mut JobObject>) {
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
    draft.plan.waits_for_room = true;
    let told = there.annotations.get(labels::TOLD_OF_ROOM);
    let told = told.and_then(|at| at.parse().ok()).unwrap_or(since).max(since);
    let pause = told.duration_since(since).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
    let left_at = draft.observed.room_left_at.filter(|left| *left > told);
    let due = match left_at {
        Some(left) => told.checked_add(SHORTEST_PAUSE).map(|due| due.max(left)),
        None => told.checked_add(pause),
    };
    match due {
        Ok(due) if due > draft.exact_now => draft.plan.requeue_at(due, "pods of a gang wait for room"),
        _ => {
            let note = (labels::TOLD_OF_ROOM.to_owned(), draft.exact_now.to_string());
            group.metadata.annotations.get_or_insert_default().extend([note]);
        }
    }
}

fn record<'d, J: TrainingJob>(draft: &Draft<'d, J>, scheduler: &GangScheduler) -> Option<&'d ObjectRecord> {
    let groups = draft.observed.objects.get(&scheduler.pod_group())?;
    groups.get(draft.job.topology.job).map(|group| &**group)
}

/// What the scheduler has made of the group, if it has looked at it.
fn phase(group: &ObjectRecord) -> Option<&str> {
    let phase = group.content["status"]["phase"].as_str();
    phase.filter(|phase| !phase.is_empty())
}

fn has_started(state: &ReplicaState) -> bool {
    use ReplicaState::{Failed, Running, Succeeded};
    matches!(state, Running | Succeeded | Failed)
}

/// Whether the scheduler has a place for the pod.
fn is_bound(pod: &PodRecord) -> bool {
    match pod.phase {
        Phase::Running | Phase::Unknown => true,
        Phase::Pending => pod.scheduled,
        Phase::Succeeded | Phase::Failed => false,
    }
}

/// How often the whole job has been restarted.
fn attempt<J>(draft: &Draft<'_, J>) -> u32 {
    u32::try_from(draft.status.recovery.job).unwrap_or(0)
}

/// Volcano lets a group in once, and pods that come again wait for their turn in a new one. Coscheduling looks at the pods alone.
fn is_of_an_earlier_attempt<J>(
    draft: &Draft<'_, J>,
    scheduler: &GangScheduler,
    group: &ObjectRecord,
) -> bool {
    let made_for = group.annotations.get(labels::RESTART_ATTEMPT);
    let made_for = made_for.and_then(|attempt| attempt.parse().ok()).unwrap_or(0u32);
    *scheduler == GangScheduler::Volcano && made_for < attempt(draft)
}
