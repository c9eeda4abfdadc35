//! Plans an active job, which is neither finished nor suspended: survey, verdict, consequences.

use crate::api::{ConditionStatus, ConditionType, RestartScope};
use crate::job::{Milestone, Replica, Replicas, RoleReplicas};

use super::draft::Draft;
use super::survey::{self, survey};
use super::verdict::{self, FailedReplica, JobVerdict, RestartLimit, Restarts};
use super::{children, end, gang, notices, objects, progress, reasons, recovery, relabel, resize};

pub(super) fn plan_active(draft: &mut Draft<'_>) {
    let job = draft.job;
    draft.waits = gang::waits(draft);
    if draft.waits_for_first_turn() {
        draft.begin_to_wait();
    } else {
        draft.begin();
    }
    notices::add_lingering(draft);
    let survey = survey(job, &draft.status, draft.observed);
    relabel::find_lost(draft, &survey);
    if !draft.waits || !draft.status.replica_statuses.is_empty() {
        draft.count(&survey.states);
    }
    let verdict = verdict::judge(draft, &survey);
    progress::record(draft, &survey);
    match verdict {
        JobVerdict::Failed {
            milestone,
            record,
            limit,
        } => end::fail(draft, &milestone, *record, limit.as_deref()),
        JobVerdict::Succeeded if draft.must_show_running() => draft.count_pending_as_active(),
        JobVerdict::Succeeded => end::succeed(draft),
        JobVerdict::SucceedsAt(at) => {
            draft.must_show_running();
            draft.count_pending_as_active();
            draft.plan.requeue_at(at, "grace period before success");
        }
        JobVerdict::FailsAt(at) => {
            draft.count_pending_as_active();
            draft.plan.requeue_at(at, "grace period before failure");
        }
        JobVerdict::Restarts(restarts) => {
            wait_for_deadline(draft);
            notices::add(draft);
            restart(draft, &restarts);
        }
        JobVerdict::GoesOn { .. } if resize::restart(draft) => {
            wait_for_deadline(draft);
            count_after_restart(draft);
        }
        JobVerdict::GoesOn { running } => {
            wait_for_deadline(draft);
            notices::add(draft);
            if running {
                draft.mark_running();
            } else {
                stop_running(draft, &survey.states);
            }
            draft.count_pending_as_active();
            if !draft.is_stored_first() {
                let has_objects = objects::reconcile(draft, &survey.states);
                children::reconcile(draft, &survey.roles, has_objects);
                relabel::repair(draft);
            }
        }
    }
}

/// Sets Running to False if no replica runs any more: all have lost their pods or nodes, and no restart is due.
fn stop_running(draft: &mut Draft<'_>, states: &Replicas<'_>) {
    let runs = |role: &RoleReplicas<'_>| role.running() > 0;
    if draft.status.is(ConditionType::Running) && !states.roles().iter().any(runs) {
        let (type_, holds) = (ConditionType::Running, ConditionStatus::False);
        draft.set(type_, holds, reasons::NOT_RUNNING, &Milestone::Interrupted);
    }
}

fn wait_for_deadline(draft: &mut Draft<'_>) {
    if let Some(at) = draft.deadline() {
        draft.plan.requeue_at(at, "activeDeadlineSeconds");
    }
}

/// Records the restarts in the status. The next plan, made from the stored status, deletes the outdated pods.
fn restart(draft: &mut Draft<'_>, restarts: &Restarts<'_, '_>) {
    let counted = restarts.scopes.iter();
    let counted = counted.filter(|failed| failed.limit == Some(RestartLimit::Job));
    let count = i32::try_from(counted.count()).unwrap_or(i32::MAX);
    recovery::charge(&mut draft.status, count, &draft.job.policy.failure, draft.now);
    for failed in &restarts.scopes {
        let (scope, replica) = (failed.scope, &failed.replica);
        if let Some(run_time) = failed.failure.run_time {
            recovery::back_off(&mut draft.status.recovery, scope, replica, run_time, draft.now);
        }
        if failed.limit == Some(RestartLimit::Role) {
            recovery::charge_role(&mut draft.status.recovery, replica.role.name(), 1);
        }
        let by = attempts_to_skip(draft, failed);
        recovery::restart(&mut draft.status.recovery, failed.scope, &failed.replica, by);
    }
    if let Some(root_cause) = &restarts.root_cause {
        let record = root_cause.failure.record.clone();
        draft.status.set_failure(Some(record));
        let milestone = Milestone::Restarting {
            role: root_cause.replica.role.name(),
        };
        draft.set(
            ConditionType::Restarting,
            ConditionStatus::True,
            reasons::RESTARTING,
            &milestone,
        );
        let message = draft.job.job.message(&milestone);
        draft.event(true, reasons::RESTARTING, message);
    }
    if restarts
        .scopes
        .iter()
        .any(|failed| *failed.scope == RestartScope::Job)
    {
        resize::record(draft);
    }
    count_after_restart(draft);
}

/// Counts the replicas after a restart. The pods of the earlier attempt are outdated now and are not counted.
fn count_after_restart(draft: &mut Draft<'_>) {
    draft.count(&survey::states(draft.job, &draft.status, draft.observed));
    draft.count_pending_as_active();
}

/// Returns the number by which the attempt of the restarted scope must rise so that all its pods are outdated: 1, or more
/// if the status was lost and the pods have later attempts than the status.
fn attempts_to_skip(draft: &Draft<'_>, failed: &FailedReplica<'_, '_>) -> i32 {
    let restarts = |replica: &Replica<'_>| match failed.scope {
        RestartScope::Job => true,
        RestartScope::Role => replica.role.name() == failed.replica.role.name(),
        _ => replica.key() == failed.replica.key(),
    };
    let ahead = draft.job.topology.all().filter(restarts).filter_map(|replica| {
        let pod = draft.observed.pods.get(&replica.pod_name())?;
        let attempt = recovery::attempt(&draft.status.recovery, &replica);
        let is_outdated = recovery::is_outdated(pod.attempt, attempt);
        i32::try_from(pod.attempt.checked_sub(attempt)?)
            .ok()
            .filter(|_| !is_outdated)
    });
    ahead.max().unwrap_or(0).saturating_add(1)
}
