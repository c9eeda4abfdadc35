//! The actions of an active job: creates the missing children, and deletes the surplus and outdated ones.

use jiff::Timestamp;

use crate::api::{FailureAction, Recovery};
use crate::job::Scope;
use crate::render;
use crate::validate::ValidJob;

use super::facts::Facts;
use super::next_status::NextStatus;
use super::observed::PodRecord;
use super::survey::{ObservedReplica, ObservedRole, Situation, Survey};
use super::types::{Deletion, Plan, PlannedPod};
use super::verdict::JobVerdict;
use super::{notices, objects, reasons, recovery, relabel};

/// Returns the actions for an active job with this next status.
pub(super) fn actions(
    facts: &Facts<'_>,
    survey: &Survey<'_>,
    verdict: &JobVerdict<'_, '_>,
    next: &NextStatus<'_>,
) -> Plan {
    let deadline = || Plan::wait(survey.deadline, "activeDeadlineSeconds");
    let lost = relabel::lost(facts.observed, survey);
    let before = lost.and(notices::lingering(facts.job, survey));
    let waits = || deadline().and(notices::waiting(facts, survey));
    let consequences = match verdict {
        JobVerdict::Failed { .. } | JobVerdict::Succeeded => Plan::default(),
        JobVerdict::SucceedsAt(at) => Plan::wait(*at, "grace period before success"),
        JobVerdict::FailsAt(at) => Plan::wait(*at, "grace period before failure"),
        JobVerdict::Resizes { .. } => deadline(),
        JobVerdict::Restarts(_) => waits(),
        JobVerdict::GoesOn { .. } if next.stored_first => waits(),
        JobVerdict::GoesOn { .. } => waits().and(reconcile(facts, survey, &next.status.recovery)),
    };
    before.and(consequences)
}

/// Plans the creates, patches and deletes that bring the job's children in line with its spec. Nothing is created while
/// the job waits in the queue of a gang scheduler, or lacks an object that its pods may need.
fn reconcile(facts: &Facts<'_>, survey: &Survey<'_>, recovery: &Recovery) -> Plan {
    let (mut plan, has_objects) = objects::reconcile(facts, survey);
    plan.delete.extend(surplus(facts).chain(outdated(survey)));
    let mut creates = Plan::default();
    if !survey.waits && has_objects {
        let is_missing = |name: &str| !facts.observed.services.contains_key(name);
        creates = create_pods(facts, survey, recovery);
        creates.create_services = render::services(facts.job, is_missing);
    }
    let repair = relabel::repair(facts, &plan.delete);
    plan.and(creates).and(repair)
}

/// Returns the deletions of the job's children that belong to no replica: after scaling down, or created by hand. Names
/// decide, because labels can be edited.
fn surplus(facts: &Facts<'_>) -> impl Iterator<Item = Deletion> {
    let (topology, observed) = (&facts.job.topology, facts.observed);
    let pods = observed.pods.values();
    let pods = pods.filter(|p| !p.deleting && !topology.has_replica_named(&p.name));
    let services = observed.services.values();
    let services = services.filter(|s| !s.deleting && !topology.has_service_named(&s.name));
    let services = services.map(|s| s.planned_deletion());
    pods.map(|p| p.planned_deletion()).chain(services)
}

fn outdated(survey: &Survey<'_>) -> impl Iterator<Item = Deletion> {
    let outdated = survey
        .replicas()
        .filter(|r| matches!(r.situation, Situation::Outdated));
    let pods = outdated.filter_map(|r| r.pod).filter(|pod| !pod.deleting);
    pods.map(|pod| pod.planned_deletion())
}

/// Creates the pods of replicas that restart together at the same time, once the last of the old pods is gone. A pod
/// that came earlier would join a cluster that is about to end. If the whole job restarts, surplus pods must be gone
/// as well, because they would reach the new pods under the old names.
fn create_pods(facts: &Facts<'_>, survey: &Survey<'_>, recovery: &Recovery) -> Plan {
    let (job, observed) = (facts.job, facts.observed);
    let (mut plan, mut paused) = (Plan::default(), None);
    let is_leaving =
        |r: &ObservedReplica<'_>| matches!(r.situation, Situation::Outdated | Situation::Stopping(_));
    let leaving = |r: &&ObservedRole<'_>| r.replicas.iter().any(is_leaving);
    let topology = &job.topology;
    let mut names = observed.pods.keys();
    let surplus = names.any(|name| !topology.has_replica_named(name));
    let rules = &job.policy.failure.rules;
    let may = |action| rules.iter().any(|rule| rule.action.as_ref() == Some(action));
    // The status does not show which replicas restart together by a rule or by the answer of the kind.
    let job_may = may(&FailureAction::RestartJob) || job.job.framework().answers_failures;
    let role_may = may(&FailureAction::RestartRole);
    // A pod that was created before the last restart of the whole job. That of a step that is done stays.
    let is_earlier = |pod: &PodRecord| pod.attempt < survey.attempt;
    let is_done = |r: &&ObservedReplica<'_>| matches!(r.situation, Situation::Succeeded);
    let mut going = survey.replicas().filter(|r| !is_done(r)).filter_map(|r| r.pod);
    let mut pods = observed.pods.values();
    let all_restart =
        going.any(is_earlier) || pods.any(|pod| is_earlier(pod) && !topology.has_replica_named(&pod.name));
    let together = |r: &ObservedRole<'_>| job_may || all_restart || r.scope == Scope::Job;
    let waits = |r: &ObservedRole<'_>| together(r) && (surplus || leaving(&r));
    if survey.roles.iter().any(waits) {
        return plan;
    }
    for of_role in &survey.roles {
        if (role_may || of_role.scope != Scope::Replica) && leaving(&of_role) {
            continue;
        }
        if !survey.is_due(job, of_role.role) {
            continue;
        }
        let missing = of_role.replicas.iter();
        for of_replica in missing.filter(|r| matches!(r.situation, Situation::Missing)) {
            match recovery::paused_until(recovery, &of_replica.replica, facts.now) {
                Some((until, failures)) => {
                    plan.requeue_at(until, "a pause between restarts");
                    paused = paused.or(Some((until, failures)));
                }
                None => plan.create_pods.push(PlannedPod {
                    name: of_replica.name.clone(),
                    attempt: of_replica.attempt,
                }),
            }
        }
    }
    match paused {
        Some((until, failures)) => plan.and(pause(job, until, failures)),
        None => plan,
    }
}

/// Returns the notice about replicas whose attempts keep failing, or whose kind pauses before the next attempt. A kind that
/// answers failures may pause for longer than usual.
fn pause(job: &ValidJob<'_>, until: Timestamp, failures: i32) -> Plan {
    let usual = recovery::pause_after(failures);
    let next = match usual.filter(|_| !job.job.framework().answers_failures) {
        Some(seconds) => format!("{seconds} s after the last failure"),
        None => format!("at {until}"),
    };
    let message = match usual {
        Some(_) => {
            format!(
                "{failures} attempts in a row failed within ten minutes of their start; the next one starts {next}"
            )
        }
        None => format!("the next attempt starts {next}"),
    };
    Plan::notice(reasons::RESTART_BACK_OFF, message)
}
