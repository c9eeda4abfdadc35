//! Records restarts, starts and successes in the next status.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{Backoff, FailurePolicy, JobStatus, MAX_COUNT, MAX_RESTARTS_IN_WINDOW, Recovery};
use crate::job::{Replica, Role, Scope};
use crate::validate::ValidJob;

use super::facts::Facts;
use super::failure::RunTime;
use super::limits::RestartLimit;
use super::recovery::{HOUR, JOB_KEY, attempt, format_indexes, is_done, is_outdated, pause_after, role_key};
use super::survey::{ObservedReplica, Situation, Survey};
use super::verdict::{FailedReplica, JobVerdict};

/// Records the results of the survey, and the restarts of the verdict. The next plan, made from the stored status, deletes
/// the outdated pods.
pub(super) fn record(
    status: &mut JobStatus,
    facts: &Facts<'_>,
    survey: &Survey<'_>,
    verdict: &JobVerdict<'_, '_>,
) {
    let (policy, in_place) = (&facts.job.policy, &survey.in_place);
    status.recovery.in_place.clone_from(&in_place.counted);
    charge(status, in_place.fresh, &policy.failure, facts.now);
    for (role, restarts) in &in_place.fresh_of_roles {
        charge_role(&mut status.recovery, role, *restarts);
    }
    record_progress(&mut status.recovery, survey);
    match verdict {
        JobVerdict::Restarts(restarts) => {
            let counted = restarts.scopes.iter();
            let counted = counted.filter(|failed| failed.limit == Some(RestartLimit::Job));
            let count = i32::try_from(counted.count()).unwrap_or(i32::MAX);
            charge(status, count, &policy.failure, facts.now);
            for failed in &restarts.scopes {
                restart_scope(&mut status.recovery, facts, survey, failed);
            }
        }
        JobVerdict::Resizes { ahead, .. } => {
            // All pods are of an earlier attempt then. A number far ahead is invalid, and its pod is outdated anyway.
            let ahead = Some(*ahead).filter(|ahead| !is_outdated(*ahead, 0));
            let ahead = ahead.and_then(|ahead| i32::try_from(ahead).ok()).unwrap_or(0);
            status.recovery.job = later(ahead.max(status.recovery.job), 1);
            forget_progress(facts.job, &mut status.recovery);
        }
        _ => {}
    }
    let creates_for_new_sizes = match verdict {
        JobVerdict::Restarts(restarts) => restarts.scopes.iter().any(|f| f.scope == Scope::Job),
        JobVerdict::Resizes { .. } | JobVerdict::GoesOn { .. } => true,
        _ => false,
    };
    if creates_for_new_sizes {
        status.recovery.sizes = facts.job.topology.sizes();
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
                .insert(name.to_owned(), format_indexes(&completed));
        }
        if of_role.scope == Scope::Replica {
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
            .max(of_role.started);
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
    remembered.uncounted.retain(|name, _| known(name));
}

fn restart_scope(
    recovery: &mut Recovery,
    facts: &Facts<'_>,
    survey: &Survey<'_>,
    failed: &FailedReplica<'_, '_>,
) {
    let replica = &failed.replica;
    for key in keys(facts.job, failed) {
        back_off(recovery, key, failed, facts.now);
    }
    match failed.limit {
        Some(RestartLimit::Role) => charge_role(recovery, replica.role.name(), 1),
        Some(RestartLimit::Hour(_)) => {
            let role = replica.role.name().to_owned();
            let times = recovery.uncounted.entry(role).or_default();
            times.retain(|time| facts.now.duration_since(time.0) < HOUR);
            times.push(Time(facts.now));
            let most = usize::try_from(MAX_RESTARTS_IN_WINDOW).unwrap_or_default();
            times.drain(..times.len().saturating_sub(most));
        }
        Some(RestartLimit::Job) | None => {}
    }
    let step = attempts_to_skip(recovery, survey, failed);
    restart(facts.job, recovery, failed.scope, replica, step);
}

/// Returns the number by which the attempt of the restarted scope must rise so that all its pods are outdated: 1, or more
/// if the status was lost and the pods have later attempts than the status.
fn attempts_to_skip(recovery: &Recovery, survey: &Survey<'_>, failed: &FailedReplica<'_, '_>) -> i32 {
    let restarts = |of: &&ObservedReplica<'_>| {
        let is_it = of.replica.key() == failed.replica.key();
        is_it || failed.replica.role.restarts(of.replica.role, failed.scope)
    };
    let ahead = survey.replicas().filter(restarts).filter_map(|of| {
        let made_for = of.pod?.attempt;
        let attempt = attempt(recovery, &of.replica);
        let ahead = made_for.checked_sub(attempt)?;
        let is_outdated = is_outdated(made_for, attempt);
        i32::try_from(ahead).ok().filter(|_| !is_outdated)
    });
    ahead.max().unwrap_or(0).saturating_add(1)
}

/// Records a restart: raises the attempt of the scope by `step`, and clears the started and completed replicas in it.
fn restart(job: &ValidJob<'_>, recovery: &mut Recovery, scope: Scope, replica: &Replica<'_>, step: i32) {
    let bump = |n: &mut i32| *n = later(*n, step);
    let role = replica.role;
    match scope {
        Scope::Job => {
            bump(&mut recovery.job);
            forget_progress(job, recovery);
        }
        Scope::Role | Scope::Roles(_) => {
            let roles = job.topology.roles.iter();
            for role in roles.filter(|other| role.restarts(other, scope)) {
                if is_done(job, recovery, role) {
                    continue;
                }
                bump(recovery.roles.entry(role.name().to_owned()).or_default());
                recovery.started.remove(role.name());
                recovery.completed.remove(role.name());
                for replica in role.all() {
                    recovery.in_place.remove(&replica.key());
                }
            }
        }
        Scope::Replica => {
            bump(recovery.replicas.entry(replica.key()).or_default());
            recovery.in_place.remove(&replica.key());
            if let Some(started) = recovery.started.get_mut(role.name()) {
                // The replica has not started in its new attempt.
                *started = (*started).min(i32::try_from(replica.index).unwrap_or(i32::MAX));
            }
        }
    }
}

/// Returns the attempt that is later by `step`. The numbers wrap to 0 after the maximum of a status. Pods from before the
/// wrap are so far ahead that they are outdated.
pub(super) fn later(attempt: i32, step: i32) -> i32 {
    let next = attempt.max(0).saturating_add(step);
    if next > MAX_COUNT { 0 } else { next }
}

/// Returns the keys in `recovery.backoff` of what restarts after a failure.
fn keys(job: &ValidJob<'_>, failed: &FailedReplica<'_, '_>) -> Vec<String> {
    match failed.scope {
        Scope::Job => vec![JOB_KEY.to_owned()],
        Scope::Replica => vec![failed.replica.key()],
        Scope::Role | Scope::Roles(_) => {
            let roles = job.topology.roles.iter();
            let restarted = roles.filter(|role| failed.replica.role.restarts(role, failed.scope));
            restarted.map(role_key).collect()
        }
    }
}

/// Records the pause before a restart. It doubles with each consecutive attempt that failed soon. The first of these has
/// none, unless its pod was rejected. An attempt that failed later resets the pause. It is at least the pause that the
/// kind requests.
fn back_off(recovery: &mut Recovery, key: String, failed: &FailedReplica<'_, '_>, now: Timestamp) {
    let known = recovery.backoff.remove(&key).unwrap_or_default();
    let (failures, pause) = match failed.failure.run_time {
        // No process is to blame, so the count of failures stays.
        None => (known.failures, None),
        Some(RunTime::Long) => (0, None),
        Some(run_time) => {
            let least = if run_time == RunTime::Zero { 2 } else { 1 };
            let failures = known.failures.saturating_add(1).clamp(least, MAX_COUNT);
            (failures, pause_after(failures))
        }
    };
    let of_kind = i32::try_from(failed.pause.as_secs()).unwrap_or(i32::MAX);
    let until = match pause.unwrap_or_default().max(of_kind) {
        0 => known.until.filter(|_| failed.failure.run_time.is_none()),
        pause => now
            .checked_add(SignedDuration::from_secs(pause.into()))
            .ok()
            .map(Time),
    };
    if failures > 0 || until.is_some() {
        recovery.backoff.insert(key, Backoff { failures, until });
    }
}

/// Clears the started and completed replicas, except those of roles that succeed once. Attempts are kept, because they
/// must never decrease.
pub(super) fn forget_progress(job: &ValidJob<'_>, recovery: &mut Recovery) {
    recovery.started.clear();
    let done = job
        .topology
        .roles
        .iter()
        .filter(|role| is_done(job, recovery, role));
    let done: BTreeSet<&str> = done.map(Role::name).collect();
    recovery.completed.retain(|name, _| done.contains(&**name));
    recovery.in_place.clear();
}

/// Counts restarts against the limits. If the failure policy has a time window, the times of the latest restarts are
/// recorded as well.
fn charge(status: &mut JobStatus, restarts: i32, policy: &FailurePolicy, now: Timestamp) {
    let most = status.restart_count.max(MAX_COUNT);
    status.restart_count = status.restart_count.max(0).saturating_add(restarts).min(most);
    let times = &mut status.recovery.restarted;
    let Some((limit, _)) = policy.max_restarts.zip(policy.window_seconds) else {
        times.clear();
        return;
    };
    let most = usize::try_from(limit).unwrap_or(0).saturating_add(1);
    let new = usize::try_from(restarts).unwrap_or(0).min(most);
    times.extend(std::iter::repeat_n(Time(now), new));
    times.drain(..times.len().saturating_sub(most));
}

/// Counts restarts against the role's own limit.
fn charge_role(recovery: &mut Recovery, role: &str, restarts: i32) {
    if restarts > 0 {
        let used = recovery.retries.entry(role.to_owned()).or_default();
        *used = (*used).max(0).saturating_add(restarts).min(MAX_COUNT);
    }
}
