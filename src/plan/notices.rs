//! What the job's author is to know as long as replicas do not run.

use super::observed::{GATED, Phase, PodRecord};
use crate::job::Role;
use crate::job::TrainingJob;
use crate::render::accelerators::additions;

use super::draft::Draft;
use super::gang;
use super::types::PlannedEvent;

/// Adds one notice for each reason why pods wait, in the Go operator's words
/// (`pkg/core/job.go`, RecordAbnormalPods), which sends one for each pod in every reconcile.
pub(super) fn add<J: TrainingJob>(draft: &mut Draft<'_, J>) {
    let topology = &draft.job.topology;
    let mut notices: Vec<(PlannedEvent, usize)> = Vec::new();
    for replica in topology.all() {
        let name = replica.host();
        let pod = draft.observed.pods.get(&name);
        let Some((reason, message)) = pod.filter(|p| !p.deleting).and_then(|p| waits(p)) else {
            continue;
        };
        if gang::speaks_for(draft, replica.role, reason) {
            continue;
        }
        match notices.iter_mut().find(|(notice, _)| notice.reason == reason) {
            Some((_, others)) => *others += 1,
            None => {
                let notice = PlannedEvent {
                    warning: true,
                    reason: reason.to_owned(),
                    message,
                };
                notices.push((notice, 0));
            }
        }
    }
    draft.plan.notices = notices
        .into_iter()
        .map(|(mut notice, others)| {
            match others {
                0 => {}
                1 => notice.message += " (and another pod)",
                _ => notice.message += &format!(" (and {others} other pods)"),
            }
            notice
        })
        .collect();
    gang::notices(draft);
    let kept = kept_from_accelerators(draft);
    if !kept.is_empty() && starts(draft) {
        draft.plan.notices.push(PlannedEvent {
            warning: true,
            reason: "AcceleratorNotAdded".to_owned(),
            message: kept.join("; "),
        });
    }
    if topology.roles.iter().any(|role| sets_restart_policy(role)) && starts(draft) {
        let notice = PlannedEvent {
            warning: true,
            reason: "SetPodTemplateRestartPolicy".to_owned(),
            message: "Restart policy in pod template will be overwritten by restart policy in replica spec"
                .to_owned(),
        };
        draft.plan.notices.push(notice);
    }
}

/// Whether the role's pod template has a restart policy of its own, which is replaced by the role's.
fn sets_restart_policy(role: &Role<'_>) -> bool {
    let own = role
        .template()
        .spec
        .as_ref()
        .and_then(|s| s.restart_policy.as_deref());
    own.is_some_and(|own| !own.is_empty())
}

/// What the job has itself and accelerators would add, by role.
fn kept_from_accelerators<J: TrainingJob>(draft: &Draft<'_, J>) -> Vec<String> {
    let topology = &draft.job.topology;
    let accelerators = &topology.settings.accelerators;
    if accelerators.is_empty() {
        return Vec::new();
    }
    let roles = topology.roles.iter().filter(|role| role.replicas > 0);
    let kept = roles.flat_map(|role| {
        let spec = role.template().spec.iter();
        let kept = spec.flat_map(|spec| {
            let main = J::FRAMEWORK.container_of(&spec.containers);
            additions(spec, main, accelerators).kept
        });
        kept.map(|kept| format!("{}: {}", role.name(), kept.problem))
    });
    kept.collect()
}

/// Whether any pod is still to run.
pub(super) fn starts<J: TrainingJob>(draft: &Draft<'_, J>) -> bool {
    let topology = &draft.job.topology;
    let mut names = topology.all().map(|r| r.host());
    names.any(|name| {
        draft
            .observed
            .pods
            .get(&name)
            .is_none_or(|pod| pod.phase == Phase::Pending)
    })
}

/// Why a pod waits, if the cluster says more than a word.
fn waits(pod: &PodRecord) -> Option<(&str, String)> {
    let containers = pod.containers.iter();
    let waiting = containers.filter_map(|c| Some((c, c.waiting.as_ref()?)));
    for (container, (reason, why)) in waiting {
        if !why.is_empty() {
            let message = format!(
                "Error pod {} container {} waiting message: {why}",
                pod.name, container.name
            );
            return Some((reason, message));
        }
    }
    // A pod that is gated waits for its turn, as it is meant to.
    let unscheduled = pod.unscheduled.as_ref();
    let (reason, why) = unscheduled.filter(|(reason, _)| reason != GATED)?;
    Some((reason, format!("Error pod {} condition message: {why}", pod.name)))
}
