//! Suspends and resumes a job. A suspended job has no pods, and its deadline does not run.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{ConditionStatus, ConditionType, JobStatus};
use crate::job::Milestone;

use super::facts::Facts;
use super::next_status::NextStatus;
use super::types::Plan;
use super::{objects, reasons, restarts};

/// Plans a suspended job: sets the condition first, then deletes the pods and services.
pub(super) fn suspended<'a>(facts: &'a Facts<'a>, status: JobStatus) -> (NextStatus<'a>, Plan) {
    let milestone = Milestone::Suspended;
    let mut next = NextStatus::new(facts, status);
    next.mark_created();
    restarts::forget_progress(facts.job, &mut next.status.recovery);
    next.status.recovery.backoff.clear();
    next.count_what_is_left();
    if next.status.is(ConditionType::Running) {
        let (type_, ends) = (ConditionType::Running, ConditionStatus::False);
        next.set(type_, ends, reasons::SUSPENDED, &milestone);
    }
    let (type_, holds) = (ConditionType::Suspended, ConditionStatus::True);
    if next.set(type_, holds, reasons::SUSPENDED, &milestone) {
        next.announce(false, reasons::SUSPENDED, &milestone, None);
        // The condition is stored first. If the job is resumed before its pods are gone, their end is then no failure.
        return (next, Plan::default());
    }
    let pods = facts.observed.pods.values().filter(|p| !p.deleting);
    let pods = pods.map(|p| p.planned_deletion());
    let services = facts.observed.services.values().filter(|s| !s.deleting);
    let services = services.map(|s| s.planned_deletion());
    let children = Plan {
        delete: pods.chain(services).collect(),
        ..Plan::default()
    };
    let actions = children.and(objects::end(facts, &next.status));
    (next, actions)
}

/// Resumes a suspended job with a new start time. The status is stored before anything is created, so that the next plan
/// distinguishes new pods from old ones.
pub(super) fn resumed<'a>(facts: &'a Facts<'a>, mut status: JobStatus) -> NextStatus<'a> {
    let recovery = &mut status.recovery;
    recovery.sizes = facts.job.topology.sizes();
    if !facts.observed.pods.is_empty() || !facts.observed.removed.is_empty() {
        // The existing pods belong to an earlier attempt, and new pods wait until they are gone.
        recovery.job = restarts::later(recovery.job, 1);
    }
    status.start_time = Some(Time(facts.now));
    let mut next = NextStatus::new(facts, status);
    let (type_, ends) = (ConditionType::Suspended, ConditionStatus::False);
    next.set(type_, ends, reasons::RESUMED, &Milestone::Resumed);
    next.announce(false, reasons::RESUMED, &Milestone::Resumed, None);
    // Clients show the last condition as the state of the job, so Suspended must not be the last one.
    let conditions = &mut next.status.conditions;
    conditions.sort_by_key(|c| c.status == ConditionStatus::True);
    next.count_pending_as_active();
    next
}
