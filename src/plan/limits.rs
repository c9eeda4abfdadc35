//! The limits of restarts: of the run policy, of a role, and of those that count against nothing else.

use jiff::{SignedDuration, Timestamp};

use crate::api::{JobStatus, Recovery};
use crate::validate::{Policy, ValidJob};

use super::facts::Facts;
use super::recovery;
use super::survey::Survey;

/// The limit that a restart counts against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RestartLimit {
    /// The limits of the run policy.
    Job,
    /// The [retries](TrainingJob::retries) of the role.
    Role,
    /// This number of restarts in an hour, which the kind sets for restarts that count against nothing else.
    Hour(u32),
}

/// A restart that counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charge<'a> {
    pub(super) limit: RestartLimit,
    /// The role of the failed replica.
    pub(super) role: &'a str,
}

/// Returns the limit that restarts exceed, as a text, if any.
pub(super) fn exceeded(
    facts: &Facts<'_>,
    status: &JobStatus,
    survey: &Survey<'_>,
    charges: &[Charge<'_>],
) -> Option<String> {
    let (job, recovery) = (facts.job, &status.recovery);
    exceeded_by_job(&job.policy, status, survey, charges, facts.now)
        .or_else(|| exceeded_retries(job, recovery, survey, charges))
        .or_else(|| exceeded_in_an_hour(recovery, charges, facts.now))
}

/// Returns the limit of the run policy that the restarts, or those in place, exceed, as a text, if any.
///
/// A limit of n allows n restarts by the operator, and the next failure fails the job. Restarts by the kubelet have already
/// happened when they are observed. They fail the job when the n-th is observed (the first, if n is 0), as under the Go
/// operator.
fn exceeded_by_job(
    policy: &Policy,
    status: &JobStatus,
    survey: &Survey<'_>,
    charges: &[Charge<'_>],
    now: Timestamp,
) -> Option<String> {
    let counted = charges.iter().filter(|charge| charge.limit == RestartLimit::Job);
    let needed = i32::try_from(counted.count()).unwrap_or(i32::MAX);
    let exceeds = |limit: i32, used: i32| used.saturating_add(needed) > limit;
    let is_new = needed > 0 || survey.in_place.fresh > 0;
    let all = status.restart_count.max(0).saturating_add(survey.in_place.fresh);
    // If the kubelet made the last restart, the Go operator fails the job without waiting for another failure.
    let is_last = |limit: i32| survey.in_place.fresh > 0 && all >= limit.max(1);
    let is_over = |limit: &i32| is_last(*limit) || needed > 0 && exceeds(*limit, all);
    if let Some(limit) = policy.backoff_limit.filter(is_over) {
        return Some(format!("backoffLimit {limit} is used up"));
    }
    let (limit, window) = (policy.failure.max_restarts?, policy.failure.window_seconds);
    let used = match window {
        None => all,
        Some(seconds) => {
            let window = SignedDuration::from_secs(seconds.into());
            let stored = recovery::within(&status.recovery.restarted, window, now);
            i32::try_from(stored)
                .unwrap_or(i32::MAX)
                .saturating_add(survey.in_place.fresh)
        }
    };
    let within = window
        .map(|seconds| format!(" within {seconds} s"))
        .unwrap_or_default();
    (is_new && exceeds(limit, used)).then(|| format!("maxRestarts {limit}{within} is used up"))
}

/// Returns the limit of a role's own restarts that its restarts exceed, as a text, if any.
fn exceeded_retries(
    job: &ValidJob<'_>,
    recovery: &Recovery,
    survey: &Survey<'_>,
    charges: &[Charge<'_>],
) -> Option<String> {
    survey.roles.iter().find_map(|of_role| {
        let name = of_role.role.name();
        let counted = charges.iter().filter(|c| c.limit == RestartLimit::Role);
        let needed = counted.filter(|charge| charge.role == name).count();
        let needed = i32::try_from(needed).unwrap_or(i32::MAX);
        let in_place = survey.in_place.fresh_of_roles.get(name).copied().unwrap_or(0);
        let new = needed.saturating_add(in_place);
        if new == 0 {
            return None;
        }
        let limit = job.job.retries(of_role.role)?;
        let stored = recovery.retries.get(name).copied().unwrap_or(0);
        (i64::from(stored.max(0)) + i64::from(new) > i64::from(limit))
            .then(|| format!("the limit of {limit} restarts of {name} is used up"))
    })
}

/// Returns the limit of restarts in an hour that the kind's uncounted restarts of a role exceed, as a text, if any.
fn exceeded_in_an_hour(recovery: &Recovery, charges: &[Charge<'_>], now: Timestamp) -> Option<String> {
    let limits = charges.iter().filter_map(|charge| match charge.limit {
        RestartLimit::Hour(limit) => Some((charge.role, limit)),
        RestartLimit::Job | RestartLimit::Role => None,
    });
    limits.clone().find_map(|(role, limit)| {
        let needed = limits.clone().filter(|(other, _)| *other == role).count();
        let times = recovery.uncounted.get(role).map_or(&[][..], |times| times);
        let used = recovery::within(times, recovery::HOUR, now);
        (used + needed > limit as usize)
            .then(|| format!("the limit of {limit} uncounted restarts of {role} in an hour is used up"))
    })
}
