//! Notices to the job's author about pods that wait for a scheduler.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::job::{GangScheduler, Role};
use crate::plan::facts::Facts;
use crate::plan::observed::{ObjectRecord, UNSCHEDULABLE};
use crate::plan::reasons;
use crate::plan::survey::Survey;
use crate::plan::types::Plan;

use super::{is_bound, is_of_an_earlier_attempt, phase, record};

/// The time after which a job is reported if a part of its pods holds capacity while the others have none.
const MAX_PARTLY_SCHEDULED: SignedDuration = SignedDuration::from_secs(300);

/// The time that a scheduler may take to process a new group, or all of its pods. After it the job reports that it
/// waits.
const MAX_SCHEDULER_DELAY: SignedDuration = SignedDuration::from_secs(10);

/// Returns true if the notice about the group covers this reason of a waiting pod. A scheduler with coscheduling
/// first reports of each pod only that the others are missing.
pub(in crate::plan) fn speaks_for(scheduler: Option<&GangScheduler>, role: &Role<'_>, reason: &str) -> bool {
    let is_member = |scheduler: &GangScheduler| scheduler.binds(role);
    match scheduler {
        Some(scheduler @ GangScheduler::Coscheduling(_)) => reason == UNSCHEDULABLE && is_member(scheduler),
        _ => false,
    }
}

/// Returns the notices about pods that wait for a scheduler.
pub(in crate::plan) fn notices(facts: &Facts<'_>, survey: &Survey<'_>) -> Plan {
    let topology = &facts.job.topology;
    let Some(scheduler) = &topology.settings.gang_scheduler else {
        return without_gangs(facts);
    };
    let mut roles = topology.roles.iter().filter(|role| role.replicas > 0);
    let is_foreign = |role: &Role<'_>| role.definition.in_gang && !scheduler.binds(role);
    let mut plan = Plan::default();
    if roles.any(is_foreign) && survey.is_starting() {
        let why =
            "Another scheduler is specified when gang-scheduling is enabled and it will not be overwritten";
        plan = Plan::notice(reasons::SET_POD_TEMPLATE_SCHEDULER_NAME, why.to_owned());
    }
    let Some(group) = record(facts, scheduler).filter(|group| !group.deleting) else {
        return plan;
    };
    plan.and(match scheduler {
        GangScheduler::Volcano if is_of_an_earlier_attempt(survey.attempt, scheduler, group) => {
            Plan::default()
        }
        GangScheduler::Volcano => is_not_let_in(facts, survey.waits, group),
        GangScheduler::Coscheduling(_) => has_no_nodes(scheduler, survey, group, facts.now),
    })
}

/// Returns the plan until a state that began at `since` has lasted for `long`, or None if it has.
fn until_lasted(now: Timestamp, since: Timestamp, long: SignedDuration, why: &'static str) -> Option<Plan> {
    let due = since.checked_add(long).ok().filter(|due| *due > now)?;
    Some(Plan::wait(due, why))
}

/// Returns why Volcano does not admit the group, or has no nodes for existing pods. The condition of a group remains
/// after its admission, so its phase decides.
fn is_not_let_in(facts: &Facts<'_>, waits: bool, group: &ObjectRecord) -> Plan {
    let mut pods = facts.observed.pods.values();
    if !waits && pods.all(|pod| pod.deleting || pod.is_terminal() || is_bound(pod)) {
        return Plan::default();
    }
    let name = &group.name;
    let queue = group.content["spec"]["queue"].as_str().unwrap_or_default();
    match phase(group) {
        None => {
            let why = "a PodGroup that no scheduler has processed";
            let lasts = |since| until_lasted(facts.now, since, MAX_SCHEDULER_DELAY, why);
            group.created.and_then(lasts).unwrap_or_else(|| {
                let message = format!(
                    "no scheduler has processed PodGroup {name}; check that the queue {queue} exists and that Volcano runs"
                );
                Plan::notice(reasons::POD_GROUP_WAITS, message)
            })
        }
        Some("Pending") => {
            let conditions = group.content["status"]["conditions"].as_array().into_iter();
            let is_so = |c: &&Value| c["type"] == UNSCHEDULABLE && c["status"] == "True";
            let why = conditions
                .flatten()
                .rfind(is_so)
                .and_then(|c| c["message"].as_str());
            let why = match (why, group.created) {
                (Some(why), _) => format!("Volcano reports: {why}"),
                (None, None) => return Plan::default(),
                (None, Some(since)) => {
                    let why = "a PodGroup that waits";
                    if let Some(wait) = until_lasted(facts.now, since, MAX_SCHEDULER_DELAY, why) {
                        return wait;
                    }
                    // From 1.12 on, Volcano sets the condition only for a group with pods.
                    "Volcano reports no reason in its status; see the events of the PodGroup, and the state of the \
                     queue"
                        .to_owned()
                }
            };
            let demand = demand(group);
            let message = format!("PodGroup {name} waits in queue {queue} for {demand}; {why}");
            Plan::notice(reasons::POD_GROUP_WAITS, message)
        }
        Some(_) => Plan::default(),
    }
}

/// Returns why a scheduler with coscheduling has no nodes for pods of the group.
fn has_no_nodes(
    scheduler: &GangScheduler,
    survey: &Survey<'_>,
    group: &ObjectRecord,
    now: Timestamp,
) -> Plan {
    let roles = survey.roles.iter();
    let members = roles.filter(|r| scheduler.binds(r.role));
    let pods = members.flat_map(|r| &r.replicas).filter_map(|r| r.pod);
    let pods: Vec<_> = pods.filter(|pod| !pod.deleting && !pod.is_terminal()).collect();
    let without = || pods.iter().filter(|pod| pod.has_no_node_since().is_some());
    let Some(since) = without().filter_map(|pod| pod.has_no_node_since()).min() else {
        return Plan::default();
    };
    let why = "pods of a PodGroup without nodes";
    if let Some(wait) = until_lasted(now, since, MAX_SCHEDULER_DELAY, why) {
        return wait;
    }
    let mut words = without().filter_map(|pod| Some(pod.unscheduled.as_ref()?.1.as_str()));
    let why = words.next().map_or("", of_itself);
    let (name, demand) = (&group.name, demand(group));
    let (without, all) = (without().count(), pods.len());
    let message = format!(
        "PodGroup {name} waits for {demand}; {without} of {all} pods have no node; {} reports: {why}",
        scheduler.name()
    );
    Plan::notice(reasons::POD_GROUP_WAITS, message)
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

/// Returns a notice if a part of the pods has had no node for long while the others hold theirs. Without a gang
/// scheduler, two jobs may each hold a part of the capacity that one of them needs.
fn without_gangs(facts: &Facts<'_>) -> Plan {
    let pods = || facts.observed.pods.values().filter(|pod| !pod.deleting);
    let holding = pods().filter(|pod| is_bound(pod)).count();
    let without: Vec<_> = pods().filter_map(|pod| pod.has_no_node_since()).collect();
    let Some(since) = without.iter().min().filter(|_| holding > 0) else {
        return Plan::default();
    };
    let why = "some pods without nodes";
    if let Some(wait) = until_lasted(facts.now, *since, MAX_PARTLY_SCHEDULED, why) {
        return wait;
    }
    let (all, minutes) = (without.len() + holding, MAX_PARTLY_SCHEDULED.as_mins());
    let message = format!(
        "{} of {all} pods have had no node for {minutes} minutes while the other pods occupy theirs; a gang scheduler or a \
         queue starts all pods of a job or none",
        without.len()
    );
    Plan::notice(reasons::PARTLY_SCHEDULED, message)
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
