//! What keeps replicas from running, for the job's author to read.

use crate::job::TrainingJob;
use crate::observed::PodRecord;

use super::{Draft, PlannedEvent};

/// Adds one notice for each reason why pods wait, in the Go operator's words
/// (`pkg/core/job.go`, RecordAbnormalPods), which sends one for each pod in every pass.
pub(super) fn add<J: TrainingJob>(draft: &mut Draft<'_, J>) {
    let topology = &draft.job.topology;
    let mut notices: Vec<(PlannedEvent, usize)> = Vec::new();
    for replica in topology.all() {
        let name = topology.host(replica.role, replica.index);
        let pod = draft.observed.pods.get(&name);
        let Some((reason, message)) = pod.filter(|p| !p.deleting).and_then(|p| waits(p)) else {
            continue;
        };
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
    let (reason, why) = pod.unscheduled.as_ref()?;
    Some((reason, format!("Error pod {} condition message: {why}", pod.name)))
}
