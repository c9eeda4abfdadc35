//! The consequences of a verdict about an active job: its next status, and the actions.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{ConditionStatus, ConditionType, JobStatus, Recovery, RestartScope};
use crate::job::{Milestone, RoleReplicas};

use super::facts::Facts;
use super::next_status::NextStatus;
use super::survey::{self, ObservedReplica, Situation, Survey};
use super::types::Plan;
use super::verdict::{FailedReplica, JobVerdict, RestartLimit, Restarts};
use super::{children, notices, objects, reasons, recovery, relabel};

/// Returns the next status of an active job.
pub(super) fn next_status<'a>(
    facts: &'a Facts<'a>,
    status: JobStatus,
    survey: &Survey<'_>,
    verdict: &JobVerdict<'_, '_>,
) -> NextStatus<'a> {
    let mut next = NextStatus::new(facts, status, survey.waits);
    next.mark_created();
    next.status.start_time = Some(Time(survey.start));
    if !survey.waits || !next.status.replica_statuses.is_empty() {
        next.count(&survey.states);
    }
    record_restarts_in_place(&mut next.status, survey, facts);
    record_progress(&mut next.status.recovery, survey);
    match verdict {
        JobVerdict::Failed {
            milestone,
            record,
            limit,
        } => next.fail(milestone, (**record).clone(), limit.as_deref()),
        JobVerdict::Succeeded if next.must_show_running() => next.count_pending_as_active(),
        JobVerdict::Succeeded => next.succeed(),
        JobVerdict::SucceedsAt(_) => {
            next.must_show_running();
            next.count_pending_as_active();
        }
        JobVerdict::FailsAt(_) => next.count_pending_as_active(),
        JobVerdict::Restarts(restarts) => {
            restart(&mut next, facts, survey, restarts);
            count_after_restart(&mut next, facts);
        }
        JobVerdict::Resizes { change, ahead } => {
            resize(&mut next, change, *ahead);
            count_after_restart(&mut next, facts);
        }
        JobVerdict::GoesOn { running, is_resized } => {
            next.record_sizes();
            // Pods are created for the new numbers once these are stored.
            next.stored_first |= is_resized;
            if *running {
                next.mark_running();
            } else {
                stop_running(&mut next, survey);
            }
            next.count_pending_as_active();
        }
    }
    next
}

/// Counts the restarts by the kubelet that are new.
fn record_restarts_in_place(status: &mut JobStatus, survey: &Survey<'_>, facts: &Facts<'_>) {
    let in_place = &survey.in_place;
    status.recovery.in_place.clone_from(&in_place.counted);
    recovery::charge(status, in_place.fresh, &facts.job.policy.failure, facts.now);
    for (role, restarts) in &in_place.fresh_of_roles {
        recovery::charge_role(&mut status.recovery, role, *restarts);
    }
}

/// Records which replicas have started and which have completed.
fn record_progress(remembered: &mut Recovery, survey: &Survey<'_>) {
    for of_role in &survey.roles {
        let name = of_role.role.name();
        let replicas = &of_role.replicas;
        let completed = replicas
            .iter()
            .filter(|r| matches!(r.situation, Situation::Succeeded));
        let completed: BTreeSet<u32> = completed.map(|r| r.replica.index).collect();
        if completed.is_empty() {
            remembered.completed.remove(name);
        } else {
            remembered
                .completed
                .insert(name.to_owned(), recovery::format_indexes(&completed));
        }
        if of_role.scope == RestartScope::Replica {
            remembered.started.remove(name);
            continue;
        }
        let has_pod =
            |r: &&ObservedReplica<'_>| !matches!(r.situation, Situation::Missing | Situation::Outdated);
        let prefix = replicas.iter().take_while(has_pod).count();
        // The last pods may be stopping because the role was smaller for a while. Their end is not a failure.
        let leaving = |r: &&ObservedReplica<'_>| matches!(r.situation, Situation::Stopping(_));
        let surplus = replicas[..prefix].iter().rev().take_while(leaving).count();
        let started = u32::try_from(prefix - surplus)
            .unwrap_or(u32::MAX)
            .max(recovery::started(remembered, of_role.role));
        if started == 0 {
            remembered.started.remove(name);
        } else {
            remembered
                .started
                .insert(name.to_owned(), i32::try_from(started).unwrap_or(i32::MAX));
        }
    }
    let known = |name: &str| survey.roles.iter().any(|r| r.role.name() == name);
    remembered.started.retain(|name, _| known(name));
    remembered.completed.retain(|name, _| known(name));
}

/// Records the restarts in the status. The next plan, made from the stored status, deletes the outdated pods.
fn restart(next: &mut NextStatus<'_>, facts: &Facts<'_>, survey: &Survey<'_>, restarts: &Restarts<'_, '_>) {
    let Restarts { root_cause, scopes } = restarts;
    let counted = scopes
        .iter()
        .filter(|failed| failed.limit == Some(RestartLimit::Job));
    let count = i32::try_from(counted.count()).unwrap_or(i32::MAX);
    recovery::charge(&mut next.status, count, &facts.job.policy.failure, facts.now);
    let recovery = &mut next.status.recovery;
    for failed in scopes {
        let (scope, replica) = (failed.scope, &failed.replica);
        if let Some(run_time) = failed.failure.run_time {
            recovery::back_off(recovery, scope, replica, run_time, facts.now);
        }
        if failed.limit == Some(RestartLimit::Role) {
            recovery::charge_role(recovery, replica.role.name(), 1);
        }
        let by = attempts_to_skip(recovery, survey, failed);
        recovery::restart(recovery, scope, replica, by);
    }
    if let Some(root_cause) = root_cause {
        next.status.set_failure(Some(root_cause.failure.record.clone()));
        let role = root_cause.replica.role.name();
        let (type_, milestone) = (ConditionType::Restarting, Milestone::Restarting { role });
        next.set(type_, ConditionStatus::True, reasons::RESTARTING, &milestone);
        next.announce(true, reasons::RESTARTING, &milestone, None);
    }
    if scopes.iter().any(|failed| *failed.scope == RestartScope::Job) {
        next.record_sizes();
    }
}

/// Returns the number by which the attempt of the restarted scope must rise so that all its pods are outdated: 1, or more
/// if the status was lost and the pods have later attempts than the status.
fn attempts_to_skip(recovery: &Recovery, survey: &Survey<'_>, failed: &FailedReplica<'_, '_>) -> i32 {
    let restarts = |of: &&ObservedReplica<'_>| match failed.scope {
        RestartScope::Job => true,
        RestartScope::Role => of.replica.role.name() == failed.replica.role.name(),
        _ => of.replica.key() == failed.replica.key(),
    };
    let ahead = survey.replicas().filter(restarts).filter_map(|of| {
        let made_for = of.pod?.attempt;
        let attempt = recovery::attempt(recovery, &of.replica);
        let ahead = made_for.checked_sub(attempt)?;
        let is_outdated = recovery::is_outdated(made_for, attempt);
        i32::try_from(ahead).ok().filter(|_| !is_outdated)
    });
    ahead.max().unwrap_or(0).saturating_add(1)
}

/// Restarts the whole job for other numbers of replicas. The next plan, made from the stored status, deletes the pods.
fn resize(next: &mut NextStatus<'_>, change: &str, ahead: u32) {
    next.record_sizes();
    let recovery = &mut next.status.recovery;
    // All pods are of an earlier attempt then. A number far ahead is invalid, and its pod is outdated anyway.
    let ahead = Some(ahead).filter(|ahead| !recovery::is_outdated(*ahead, 0));
    let ahead = ahead.and_then(|ahead| i32::try_from(ahead).ok()).unwrap_or(0);
    recovery.job = recovery::later(ahead.max(recovery.job), 1);
    recovery::forget_progress(recovery);
    let (type_, milestone) = (ConditionType::Restarting, Milestone::Resized { change });
    next.set(type_, ConditionStatus::True, reasons::RESIZED, &milestone);
    next.announce(false, reasons::RESIZED, &milestone, None);
}

/// Counts the replicas after a restart. The pods of the earlier attempt are outdated now and are not counted.
fn count_after_restart(next: &mut NextStatus<'_>, facts: &Facts<'_>) {
    next.count(&survey::states(facts.job, &next.status, facts.observed));
    next.count_pending_as_active();
}

/// Sets Running to False if no replica runs any more: all have lost their pods or nodes, and no restart is due.
fn stop_running(next: &mut NextStatus<'_>, survey: &Survey<'_>) {
    let runs = |role: &RoleReplicas<'_>| role.running() > 0;
    if next.status.is(ConditionType::Running) && !survey.states.roles().iter().any(runs) {
        let (type_, holds) = (ConditionType::Running, ConditionStatus::False);
        next.set(type_, holds, reasons::NOT_RUNNING, &Milestone::Interrupted);
    }
}

/// Returns the actions for an active job with this next status.
pub(super) fn actions(
    facts: &Facts<'_>,
    survey: &Survey<'_>,
    verdict: &JobVerdict<'_, '_>,
    next: &NextStatus<'_>,
) -> Plan {
    let before = notices::lingering(facts.job, survey).and(relabel::lost(facts.observed, survey));
    let deadline = || match survey.deadline {
        Some(at) => Plan::wait(at, "activeDeadlineSeconds"),
        None => Plan::default(),
    };
    let consequences = match verdict {
        JobVerdict::Failed { .. } | JobVerdict::Succeeded => Plan::default(),
        JobVerdict::SucceedsAt(at) => Plan::wait(*at, "grace period before success"),
        JobVerdict::FailsAt(at) => Plan::wait(*at, "grace period before failure"),
        JobVerdict::Resizes { .. } => deadline(),
        JobVerdict::Restarts(_) => deadline().and(notices::waiting(facts, survey)),
        JobVerdict::GoesOn { .. } => {
            let waits = deadline().and(notices::waiting(facts, survey));
            match next.stored_first {
                true => waits,
                false => waits.and(reconcile(facts, survey, &next.status.recovery)),
            }
        }
    };
    before.and(consequences)
}

/// Plans the creates, patches and deletes that bring the job's children in line with its spec.
fn reconcile(facts: &Facts<'_>, survey: &Survey<'_>, recovery: &Recovery) -> Plan {
    let (objects, has_objects) = objects::reconcile(facts, survey);
    let children = objects.and(children::reconcile(facts, survey, recovery, has_objects));
    let repair = relabel::repair(facts, &children.delete);
    children.and(repair)
}
