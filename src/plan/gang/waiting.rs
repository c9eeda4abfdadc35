//! Notices to the job's author about pods that wait for a scheduler.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::job::{GangScheduler, Role};
use crate::plan::draft::Draft;
use crate::plan::notices::starts;
use crate::plan::observed::{ObjectRecord, PodRecord, UNSCHEDULABLE};
use crate::plan::reasons;
use crate::plan::types::PlannedEvent;

use super::{is_bound, is_of_an_earlier_attempt, phase, record};

/// The time after which a job is reported if a part of its pods holds capacity while the others have none.
const MAX_PARTLY_SCHEDULED: SignedDuration = SignedDuration::from_secs(300);

/// The time that a scheduler may take to process a new group, or all of its pods. After it the job reports that it
/// waits.
const MAX_SCHEDULER_DELAY: SignedDuration = SignedDuration::from_secs(10);

/// Returns true if the notice about the group covers this reason of a waiting pod. A scheduler with coscheduling
/// first reports of each pod only that the others are missing.
pub(in crate::plan) fn speaks_for(draft: &Draft<'_>, role: &Role<'_>, reason: &str) -> bool {
    let scheduler = &draft.job.topology.settings.gang_scheduler;
    let is_member = |scheduler: &GangScheduler| scheduler.binds(role.template().spec.as_ref());
    match scheduler {
        Some(scheduler @ GangScheduler::Coscheduling(_)) => reason == UNSCHEDULABLE && is_member(scheduler),
        _ => false,
    }
}

/// Adds the notices about pods that wait for a scheduler.
pub(in crate::plan) fn notices(draft: &mut Draft<'_>) {
    let Some(scheduler) = &draft.job.topology.settings.gang_scheduler else {
        return without_gangs(draft);
    };
    let mut roles = draft.job.topology.roles.iter().filter(|role| role.replicas > 0);
    if roles.any(|role| !scheduler.binds(role.template().spec.as_ref())) && starts(draft) {
        let why =
            "Another scheduler is specified when gang-scheduling is enabled and it will not be overwritten";
        warn(draft, reasons::SET_POD_TEMPLATE_SCHEDULER_NAME, why.to_owned());
    }
    let Some(group) = record(draft, scheduler).filter(|group| !group.deleting) else {
        return;
    };
    let message = match scheduler {
        GangScheduler::Volcano if is_of_an_earlier_attempt(draft, scheduler, group) => None,
        GangScheduler::Volcano => is_not_let_in(draft, group),
        GangScheduler::Coscheduling(_) => has_no_nodes(draft, scheduler, group),
    };
    if let Some(message) = message {
        warn(draft, reasons::POD_GROUP_WAITS, message);
    }
}

fn warn(draft: &mut Draft<'_>, reason: &str, message: String) {
    draft.plan.notices.push(PlannedEvent {
        warning: true,
        reason: reason.to_owned(),
        message,
    });
}

/// Returns true if a state that began at `since` has lasted for `long`. If not, plans a reconcile for when it has.
fn has_lasted(draft: &mut Draft<'_>, since: Timestamp, long: SignedDuration, why: &'static str) -> bool {
    let due = since.checked_add(long).ok().filter(|due| *due > draft.now);
    if let Some(due) = due {
        draft.plan.requeue_at(due, why);
    }
    due.is_none()
}

/// Returns why Volcano does not admit the group, or has no nodes for existing pods. The condition of a group remains
/// after its admission, so its phase decides.
fn is_not_let_in(draft: &mut Draft<'_>, group: &ObjectRecord) -> Option<String> {
    let mut pods = draft.observed.pods.values();
    if !draft.waits && pods.all(|pod| pod.deleting || pod.is_terminal() || is_bound(pod)) {
        return None;
    }
    let name = &group.name;
    let queue = group.content["spec"]["queue"].as_str().unwrap_or_default();
    match phase(group) {
        None => {
            let why = "a PodGroup that no scheduler has processed";
            let is_old = group
                .created
                .is_none_or(|since| has_lasted(draft, since, MAX_SCHEDULER_DELAY, why));
            is_old.then(|| format!(
                "no scheduler has processed PodGroup {name}; check that the queue {queue} exists and that Volcano runs"
            ))
        }
        Some("Pending") => {
            let conditions = group.content["status"]["conditions"].as_array().into_iter();
            let is_so = |c: &&Value| c["type"] == UNSCHEDULABLE && c["status"] == "True";
            let why = conditions
                .flatten()
                .rfind(is_so)
                .and_then(|c| c["message"].as_str());
            let says = match (why, group.created) {
                (Some(why), _) => format!("Volcano reports: {why}"),
                (None, Some(since))
                    if has_lasted(draft, since, MAX_SCHEDULER_DELAY, "a PodGroup that waits") =>
                {
                    // From 1.12 on, Volcano sets the condition only for a group with pods.
                    "Volcano reports no reason in its status; see the events of the PodGroup, and the state of the \
                     queue"
                        .to_owned()
                }
                (None, _) => return None,
            };
            let demand = demand(group);
            Some(format!(
                "PodGroup {name} waits in queue {queue} for {demand}; {says}"
            ))
        }
        Some(_) => None,
    }
}

/// Returns why a scheduler with coscheduling has no nodes for pods of the group.
fn has_no_nodes(draft: &mut Draft<'_>, scheduler: &GangScheduler, group: &ObjectRecord) -> Option<String> {
    let roles = draft.job.topology.roles.iter();
    let members = roles.filter(|role| scheduler.binds(role.template().spec.as_ref()));
    let pods = members
        .flat_map(Role::all)
        .filter_map(|replica| draft.observed.pods.get(&replica.pod_name()));
    let pods: Vec<&PodRecord> = pods
        .map(|pod| &**pod)
        .filter(|pod| !pod.deleting && !pod.is_terminal())
        .collect();
    let without = || pods.iter().filter(|pod| pod.has_no_node_since().is_some());
    let since = without().filter_map(|pod| pod.has_no_node_since()).min()?;
    if !has_lasted(
        draft,
        since,
        MAX_SCHEDULER_DELAY,
        "pods of a PodGroup without nodes",
    ) {
        return None;
    }
    let mut words = without().filter_map(|pod| Some(pod.unscheduled.as_ref()?.1.as_str()));
    let why = words.next().map_or("", of_itself);
    let (name, demand) = (&group.name, demand(group));
    let (without, all) = (without().count(), pods.len());
    Some(format!(
        "PodGroup {name} waits for {demand}; {without} of {all} pods have no node; {} reports: {why}",
        scheduler.name()
    ))
}

/// Returns the resources that a group requests: `pods 3, cpu 3`.
fn demand(group: &ObjectRecord) -> String {
    let spec = &group.content["spec"];
    let mut demand = format!("pods {}", spec["minMember"]);
    for (name, amount) in spec["minResources"].as_object().into_iter().flatten() {
        let amount = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
        demand += &format!(", {name} {amount}");
    }
    demand
}

/// Returns a scheduler's message about a pod without the parts about preemption and the group.
fn of_itself(words: &str) -> &str {
    let end = [". preemption: ", ", PodGroup "]
        .into_iter()
        .filter_map(|other| words.find(other))
        .min();
    &words[..end.unwrap_or(words.len())]
}

/// Adds a notice if a part of the pods has had no node for long while the others hold theirs. Without a gang
/// scheduler, two jobs may each hold a part of the capacity that one of them needs.
fn without_gangs(draft: &mut Draft<'_>) {
    let pods = || draft.observed.pods.values().filter(|pod| !pod.deleting);
    let holding = pods().filter(|pod| is_bound(pod)).count();
    let without: Vec<_> = pods().filter_map(|pod| pod.has_no_node_since()).collect();
    let Some(since) = without.iter().min().filter(|_| holding > 0) else {
        return;
    };
    if !has_lasted(draft, *since, MAX_PARTLY_SCHEDULED, "some pods without nodes") {
        return;
    }
    let (all, minutes) = (without.len() + holding, MAX_PARTLY_SCHEDULED.as_mins());
    let message = format!(
        "{} of {all} pods have had no node for {minutes} minutes while the other pods occupy theirs; a gang scheduler or a \
         queue starts all pods of a job or none",
        without.len()
    );
    warn(draft, reasons::PARTLY_SCHEDULED, message);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_parts_about_other_pods_are_left_out() {
        let words = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available, PodGroup a/b gets rejected";
        assert_eq!(of_itself(words), "0/3 nodes are available: 3 Insufficient cpu");
        assert_eq!(of_itself("no node"), "no node");
    }
}
