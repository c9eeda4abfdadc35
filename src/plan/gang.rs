//! A job whose pods a gang scheduler binds together: what its PodGroup is to say, and whether pods may be made yet.
//!
//! The group's phase decides nothing but that. What pods do is seen and judged whatever the phase is.

use jiff::SignedDuration;
use serde_json::Value;

use crate::api::labels;
use crate::job::{GangScheduler, JobObject, ReplicaState, Replicas, TrainingJob};
use crate::render::gang::{Members, pod_group};

use super::draft::Draft;
use super::observed::{ObjectRecord, Phase, PodRecord};
use super::types::PlannedEvent;

/// How long a scheduler may take to look at a new group until the job says that none has.
const LOOKED_AT: SignedDuration = SignedDuration::from_secs(10);

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
    let pod_of = |host: &str| draft.observed.pods.get(host).map(|pod| &**pod);
    for of_role in &mut members {
        let states = replicas
            .role(of_role.role.name())
            .into_iter()
            .flat_map(|r| &r.states);
        let has_ended =
            |state: &ReplicaState| matches!(state, ReplicaState::Succeeded | ReplicaState::Failed);
        let present = of_role
            .role
            .all()
            .zip(states)
            .filter(|(_, state)| !has_ended(state));
        (of_role.present, of_role.asking) = (0, 0);
        for (replica, _) in present {
            of_role.present += 1;
            of_role.asking += u32::from(!pod_of(&replica.host()).is_some_and(is_bound));
        }
    }
    // A group that waits again although some of its pods have their places is let in if there is room for the others; at any
    // other time the numbers are those of all, so that they do not change with each pod.
    let some_are_bound = members.iter().any(|m| m.asking < m.present);
    if !(some_are_bound && there.is_some_and(|there| phase(there) == Some("Pending"))) {
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

/// What the job's author is to know of a group that waits.
pub(super) fn notices<J: TrainingJob>(draft: &mut Draft<'_, J>) {
    let Some(scheduler) = &draft.job.topology.settings.gang_scheduler else {
        return;
    };
    let mut roles = draft.job.topology.roles.iter().filter(|role| role.replicas > 0);
    if roles.any(|role| !scheduler.binds(role.template().spec.as_ref())) && super::notices::starts(draft) {
        draft.plan.notices.push(PlannedEvent {
            warning: true,
            reason: "SetPodTemplateSchedulerName".to_owned(),
            message: "Another scheduler is specified when gang-scheduling is enabled and it will not be overwritten"
                .to_owned(),
        });
    }
    let (GangScheduler::Volcano, Some(group)) = (scheduler, record(draft, scheduler)) else {
        return;
    };
    if group.deleting || !waits(draft) {
        return;
    }
    let name = &group.name;
    let message = match phase(group) {
        None => {
            let due = group
                .created
                .and_then(|created| created.checked_add(LOOKED_AT).ok());
            if let Some(due) = due.filter(|due| *due > draft.now) {
                draft
                    .plan
                    .requeue_at(due, "no scheduler has looked at the PodGroup");
                return;
            }
            let queue = group.content["spec"]["queue"].as_str().unwrap_or_default();
            format!(
                "no scheduler has looked at PodGroup {name}: is there a queue {queue}, and does Volcano run?"
            )
        }
        Some(_) => match unschedulable(group) {
            Some(why) => format!("PodGroup {name} waits for room: {why}"),
            None => return,
        },
    };
    draft.plan.notices.push(PlannedEvent {
        warning: true,
        reason: "PodGroupWaits".to_owned(),
        message,
    });
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

/// Why the scheduler does not let the group in. The condition stays when the group is let in, and then the phase tells.
fn unschedulable(group: &ObjectRecord) -> Option<&str> {
    let conditions = group.content["status"]["conditions"].as_array()?;
    let is_so = |c: &&Value| c["type"] == "Unschedulable" && c["status"] == "True";
    conditions.iter().rev().find(is_so)?["message"].as_str()
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
