//! Creates the missing pods and services of an active job, and deletes the surplus and outdated ones.

use std::sync::Arc;

use jiff::Timestamp;

use crate::api::{FailureAction, RestartScope};
use crate::render;

use super::draft::Draft;
use super::notices;
use super::observed::PodRecord;
use super::reasons;
use super::recovery;
use super::survey::{ObservedReplica, ObservedRole, Situation};
use super::types::{ChildKind, Deletion, PlannedPod};

/// Plans the creates and deletes that bring the job's children in line with its spec. Nothing is created while the
/// job waits in the queue of a gang scheduler, or lacks an object that its pods may need (`has_objects` is false).
pub(super) fn reconcile(draft: &mut Draft<'_>, survey: &[ObservedRole<'_>], has_objects: bool) {
    delete_surplus(draft);
    delete_outdated(draft, survey);
    if !draft.waits && has_objects {
        create_services(draft);
        create_pods(draft, survey);
    }
}

/// Deletes the job's children that belong to no replica: after scaling down, or created by hand. Names decide,
/// because labels can be edited.
fn delete_surplus(draft: &mut Draft<'_>) {
    let (topology, observed) = (&draft.job.topology, draft.observed);
    let pods = observed
        .pods
        .values()
        .filter(|p| !p.deleting && !topology.has_replica_named(&p.name));
    let services = observed
        .services
        .values()
        .filter(|s| !s.deleting && !topology.has_service_named(&s.name));
    draft
        .plan
        .delete
        .extend(pods.map(|p| Deletion::new(ChildKind::Pod, &p.name, &p.uid)));
    draft
        .plan
        .delete
        .extend(services.map(|s| Deletion::new(ChildKind::Service, &s.name, &s.uid)));
}

fn delete_outdated(draft: &mut Draft<'_>, survey: &[ObservedRole<'_>]) {
    let replicas = survey.iter().flat_map(|r| &r.replicas);
    let outdated = replicas.filter(|r| matches!(r.situation, Situation::Outdated));
    let pods = outdated.filter_map(|r| r.pod).filter(|pod| !pod.deleting);
    draft
        .plan
        .delete
        .extend(pods.map(|pod| Deletion::new(ChildKind::Pod, &pod.name, &pod.uid)));
}

fn create_services(draft: &mut Draft<'_>) {
    let (job, observed) = (draft.job, draft.observed);
    let missing = render::services(job, |name| !observed.services.contains_key(name));
    draft.plan.create_services.extend(missing);
}

/// Creates the pods of replicas that restart together at the same time, once the last of the old pods is gone. A pod
/// that came earlier would join a cluster that is about to end. If the whole job restarts, surplus pods must be gone
/// as well, because they would reach the new pods under the old names.
fn create_pods(draft: &mut Draft<'_>, survey: &[ObservedRole<'_>]) {
    let is_leaving =
        |r: &ObservedReplica<'_>| matches!(r.situation, Situation::Outdated | Situation::Stopping(_));
    let leaving = |r: &&ObservedRole<'_>| r.replicas.iter().any(is_leaving);
    let topology = &draft.job.topology;
    let surplus = draft
        .observed
        .pods
        .keys()
        .any(|name| !topology.has_replica_named(name));
    let rules = &draft.job.policy.failure.rules;
    let may = |action| rules.iter().any(|rule| rule.action.as_ref() == Some(action));
    let (job_may, role_may) = (may(&FailureAction::RestartJob), may(&FailureAction::RestartRole));
    // A pod that was created before the last restart of the whole job.
    let is_earlier = |pod: &Arc<PodRecord>| i64::from(pod.attempt) < draft.status.recovery.job.into();
    let all_restart = draft.observed.pods.values().any(is_earlier);
    let together = |r: &ObservedRole<'_>| job_may || all_restart || r.scope == RestartScope::Job;
    let waits = |r: &ObservedRole<'_>| together(r) && (surplus || leaving(&r));
    if survey.iter().any(waits) {
        return;
    }
    for of_role in survey {
        if (role_may || of_role.scope != RestartScope::Replica) && leaving(&of_role) {
            continue;
        }
        let first = draft.job.job.starts_after(topology, of_role.role);
        let must_be_ready = of_role.role.definition.waits_for_readiness;
        let started = |r: &ObservedReplica<'_>| has_started(&r.situation, must_be_ready);
        let is_due =
            |r: &ObservedRole<'_>| !first.contains(&r.role.class()) || r.replicas.iter().all(started);
        if !survey.iter().all(is_due) {
            continue;
        }
        let missing = of_role.replicas.iter();
        for of_replica in missing.filter(|r| matches!(r.situation, Situation::Missing)) {
            match recovery::paused_until(&draft.status.recovery, &of_replica.replica, draft.now) {
                Some((until, failures)) => pause(draft, until, failures),
                None => draft.plan.create_pods.push(PlannedPod {
                    name: of_replica.name.clone(),
                    attempt: of_replica.attempt,
                }),
            }
        }
    }
}

/// Delays the next attempt of replicas whose attempts keep failing, and adds a notice.
fn pause(draft: &mut Draft<'_>, until: Timestamp, failures: i32) {
    draft.plan.requeue_at(until, "a pause between restarts");
    let mut notices = draft.plan.notices.iter();
    if !notices.any(|notice| notice.reason == reasons::RESTART_BACK_OFF) {
        let seconds = recovery::pause_after(failures).unwrap_or_default();
        let message = format!(
            "{failures} attempts in a row failed within ten minutes of their start; the next one starts \
             {seconds} s after the last failure"
        );
        notices::push(draft, reasons::RESTART_BACK_OFF, message, 0);
    }
}

fn has_started(situation: &Situation, must_be_ready: bool) -> bool {
    match situation {
        Situation::Running { ready } => *ready || !must_be_ready,
        Situation::Succeeded | Situation::Failed(_) => true,
        _ => false,
    }
}
