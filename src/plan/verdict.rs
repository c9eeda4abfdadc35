//! The verdict on an active job: what a survey means for it. A value; nothing is changed here.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::observed::{MAX_MESSAGE, Phase, last_words};
use crate::api::{FailureAction, FailureRecord, RestartScope};
use crate::job::{FailureTolerance, Milestone, Outcome, Replica, ReplicaState, Replicas, Role, TrainingJob};

use super::draft::Draft;
use super::end;
use super::failure::{Consequence, Failure, FailureCause};
use super::pod_end::{counted_containers, main_name};
use super::policy;
use super::recovery;
use super::survey::{RoleStanding, Standing, Survey};

/// What becomes of an active job.
#[derive(Debug)]
pub(super) enum JobVerdict<'s, 'a> {
    /// It has failed.
    Failed {
        milestone: Milestone<'s>,
        /// Whether the event is a warning.
        warning: bool,
        record: FailureRecord,
    },
    /// It has succeeded.
    Succeeded,
    /// It has succeeded unless one of the replicas that still run fails by then.
    SucceedsAt(Timestamp),
    /// It has failed unless it turns out by then that another replica failed first.
    FailsAt(Timestamp),
    /// It goes on once these have restarted.
    Restarts(Restarts<'s, 'a>),
    /// It goes on.
    GoesOn {
        /// Whether the replicas that decide run.
        running: bool,
    },
}

/// Failures that restart a job, or parts of it.
#[derive(Debug)]
pub(super) struct Restarts<'s, 'a> {
    /// The failure that came first, of those that count.
    pub(super) root_cause: Option<FailedReplica<'s, 'a>>,
    /// One failure for each scope that restarts: the job, or some roles and replicas.
    pub(super) scopes: Vec<FailedReplica<'s, 'a>>,
}

/// A replica that has failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailedReplica<'s, 'a> {
    pub(super) replica: Replica<'a>,
    pub(super) scope: &'s RestartScope,
    pub(super) failure: &'s Failure,
    /// Whether it is told of. It is not if failures of the role never matter.
    matters: bool,
    /// Whether it counts against the limits of restarts. It does not if a rule of the job's failure policy says so.
    pub(super) counts: bool,
    consequence: Consequence,
    /// Whether it follows from another failure, and says nothing by itself.
    follows: bool,
}

/// Judges a job that is neither finished nor suspended. A final failure outweighs success, success outweighs the
/// deadline, and that the backoff limit.
///
/// `states` are the survey's, as success rules see them; replicas that are to be restarted become absent in them.
pub(super) fn judge<'s, 'a, J: TrainingJob>(
    draft: &Draft<'_, J>,
    survey: &'s Survey<'a>,
    states: &mut Replicas<'_>,
) -> JobVerdict<'s, 'a> {
    let mut failed = failures(draft, survey);
    let stopping = stopping(survey);
    excuse_followers(&mut failed, &stopping);
    let outcome = outcome(draft, states, &failed);
    if let Some(first) = first(failed.iter().filter(|f| f.consequence != Consequence::Restart)) {
        return match failure_held_until(draft, survey, first) {
            Some(at) => JobVerdict::FailsAt(at),
            None => final_failure(draft, &failed, first),
        };
    }
    if outcome == Outcome::Succeeded {
        return match held_until(draft, survey) {
            Some(at) => JobVerdict::SucceedsAt(at),
            None => JobVerdict::Succeeded,
        };
    }
    if deadline(draft).is_some_and(|at| at <= draft.now) {
        return JobVerdict::Failed {
            milestone: Milestone::Deadline,
            warning: true,
            record: out_of_time(draft),
        };
    }
    let root_cause = root_cause(&failed, &stopping);
    if let Some(limit) = exceeded_limit(draft, survey, &failed) {
        let root_cause = root_cause.map(|f| f.failure.record.clone());
        let root_cause = root_cause.or_else(|| latest_restart_in_place(draft));
        return JobVerdict::Failed {
            milestone: Milestone::BackoffLimit,
            warning: true,
            record: end::out_of_restarts(&limit, root_cause.unwrap_or_default()),
        };
    }
    if failed.is_empty() {
        return JobVerdict::GoesOn {
            running: outcome == Outcome::Running,
        };
    }
    JobVerdict::Restarts(Restarts {
        root_cause,
        scopes: restart_scopes(failed.iter()),
    })
}

/// When the job is out of time, if it has a deadline. The time in which it waits for its first turn does not count.
pub(super) fn deadline<J: TrainingJob>(draft: &Draft<'_, J>) -> Option<Timestamp> {
    let seconds = draft.job.policy.active_deadline_seconds;
    let seconds = seconds.filter(|_| !draft.waits_for_first_turn())?;
    let start = draft.status.start_time.as_ref()?.0;
    // A deadline beyond the end of time never comes.
    start.checked_add(SignedDuration::from_secs(seconds)).ok()
}

/// The failures that the job does not go on without.
fn failures<'s, 'a, J: TrainingJob>(
    draft: &Draft<'_, J>,
    survey: &'s Survey<'a>,
) -> Vec<FailedReplica<'s, 'a>> {
    let mut failed = Vec::new();
    for of_role in &survey.roles {
        let tolerance = draft.job.job.tolerance(of_role.role);
        let others_remain = of_role.replicas.iter().any(|s| !matches!(s, Standing::Failed(_)));
        for (index, standing) in (0..).zip(&of_role.replicas) {
            let Standing::Failed(failure) = standing else {
                continue;
            };
            let replica = Replica {
                role: of_role.role,
                index,
            };
            let pod = draft.observed.pods.get(&replica.host()).map(|pod| &**pod);
            let action = policy::action(&draft.job.policy.failure, of_role.role, failure, pod);
            let consequence = match action {
                None => failure.consequence(&*draft.job.job, of_role.role),
                Some(FailureAction::FailJob) => Consequence::FinalByRule,
                Some(_) => Consequence::Restart,
            };
            let is_ignored = action == Some(&FailureAction::Ignore);
            let is_final = consequence != Consequence::Restart;
            let is_tolerated = match tolerance {
                FailureTolerance::None => false,
                FailureTolerance::WhileOthersRemain => others_remain && is_final,
                FailureTolerance::Always => is_final || has_used_up_its_own(draft, &replica),
            };
            if !is_tolerated {
                failed.push(FailedReplica {
                    replica,
                    scope: action.and_then(policy::scope).unwrap_or(&of_role.scope),
                    failure,
                    matters: tolerance != FailureTolerance::Always,
                    counts: tolerance != FailureTolerance::Always && !is_ignored,
                    consequence,
                    follows: false,
                });
            }
        }
    }
    failed
}

/// The replicas whose pods are being deleted, as the failures that they will be.
fn stopping<'s, 'a>(survey: &'s Survey<'a>) -> Vec<FailedReplica<'s, 'a>> {
    let of_role = |role: &'s RoleStanding<'a>| {
        let replicas = (0..).zip(&role.replicas);
        replicas.filter_map(|(index, standing)| match standing {
            Standing::Stopping(failure) => Some(FailedReplica {
                replica: Replica {
                    role: role.role,
                    index,
                },
                scope: &role.scope,
                failure,
                matters: true,
                counts: true,
                consequence: Consequence::Restart,
                follows: false,
            }),
            _ => None,
        })
    };
    survey.roles.iter().flat_map(of_role).collect()
}

/// The limit of a job that may not restart.
const NO_RESTARTS: &str = "backoffLimit 0 is used up";

/// How long after another failure one is taken to follow from it.
const FOLLOWS_WITHIN: SignedDuration = SignedDuration::from_secs(10);

/// Processes that train together end when one of them is gone, with whatever exit code: where that one is restarted, theirs
/// are no verdict.
fn excuse_followers(failed: &mut [FailedReplica<'_, '_>], stopping: &[FailedReplica<'_, '_>]) {
    let restarting = failed.iter().filter(|f| f.consequence == Consequence::Restart);
    let causes: Vec<_> = restarting.chain(stopping).copied().collect();
    for follower in failed {
        let is_judged_by_code = follower.consequence == Consequence::FinalByExitCode;
        if is_judged_by_code && causes.iter().any(|cause| explains(cause, follower)) {
            follower.consequence = Consequence::Restart;
            follower.follows = true;
        }
    }
}

/// Whether one failure follows from another: they restart together, and it came no earlier. Survivors of a pod that is taken
/// away may run on for as long as its grace period, and when a pod was lost may not be known.
fn explains(cause: &FailedReplica<'_, '_>, follower: &FailedReplica<'_, '_>) -> bool {
    if !restart_together(cause.scope, cause.replica.role, follower.replica.role) {
        return false;
    }
    if cause.failure.record.time.is_none() {
        return true;
    }
    let (before, after) = (cause.failure.time(), follower.failure.time());
    let is_soon = || after.duration_since(before) <= FOLLOWS_WITHIN;
    before <= after && (cause.failure.cause == FailureCause::Lost || is_soon())
}

fn restart_together(scope: &RestartScope, role: &Role<'_>, other: &Role<'_>) -> bool {
    match scope {
        RestartScope::Job => true,
        RestartScope::Role => role.name() == other.name(),
        _ => false,
    }
}

/// The failure that came first, of those that count and do not follow from another.
fn root_cause<'s, 'a>(
    failed: &[FailedReplica<'s, 'a>],
    stopping: &[FailedReplica<'s, 'a>],
) -> Option<FailedReplica<'s, 'a>> {
    let told = || failed.iter().filter(|f| f.matters);
    let cause = first(told().filter(|f| !f.follows));
    let of_followers = || told().next().and_then(|_| stopping.first());
    cause.or_else(of_followers).copied()
}

/// Whether a replica whose failures never matter has been restarted as often as the job may be.
fn has_used_up_its_own<J>(draft: &Draft<'_, J>, replica: &Replica<'_>) -> bool {
    let restarts = draft.status.recovery.replicas.get(&replica.key());
    let limit = draft.job.policy.backoff_limit;
    limit.is_some_and(|limit| restarts.copied().unwrap_or(0) >= limit)
}

/// What the replicas' states mean. One that is to be restarted counts as absent.
fn outcome<J: TrainingJob>(
    draft: &Draft<'_, J>,
    states: &mut Replicas<'_>,
    failed: &[FailedReplica<'_, '_>],
) -> Outcome {
    for failed in failed {
        states.set(failed.replica, ReplicaState::Absent);
    }
    draft.job.outcome(states)
}

fn final_failure<'s, 'a, J: TrainingJob>(
    draft: &Draft<'_, J>,
    failed: &[FailedReplica<'s, 'a>],
    first: &FailedReplica<'s, 'a>,
) -> JobVerdict<'s, 'a> {
    let role = first.replica.role.name();
    let mut record = first.failure.record.clone();
    let (warning, milestone) = match first.consequence {
        Consequence::FinalByExitCode => (true, Milestone::FailedPermanently { role }),
        Consequence::FinalByRule => (true, Milestone::FailedByRule { role }),
        // Where no restart is allowed, no failure is: that is what the Go operator tells of each.
        _ if draft.job.policy.backoff_limit == Some(0) => {
            record = end::out_of_restarts(NO_RESTARTS, record);
            (true, Milestone::BackoffLimit)
        }
        _ => {
            let is_final = |f: &&FailedReplica<'_, '_>| {
                f.replica.role.name() == role && f.consequence == Consequence::Final
            };
            let count = failed.iter().filter(is_final).count();
            (false, Milestone::Failed { role, count })
        }
    };
    JobVerdict::Failed {
        milestone,
        warning,
        record,
    }
}

/// The failure that came first; of several at the same time, that of the first replica.
fn first<'f, 's: 'f, 'a: 'f>(
    failed: impl Iterator<Item = &'f FailedReplica<'s, 'a>>,
) -> Option<&'f FailedReplica<'s, 'a>> {
    failed.min_by_key(|f| f.failure.time())
}

/// One failure for each scope that restarts: the job, or some roles and replicas.
fn restart_scopes<'f, 's: 'f, 'a: 'f>(
    failed: impl Iterator<Item = &'f FailedReplica<'s, 'a>> + Clone,
) -> Vec<FailedReplica<'s, 'a>> {
    if let Some(whole) = first(failed.clone().filter(|f| *f.scope == RestartScope::Job)) {
        return vec![*whole];
    }
    let mut roles = BTreeSet::new();
    failed
        .filter(|f| *f.scope != RestartScope::Role || roles.insert(f.replica.role.name()))
        .copied()
        .collect()
}

/// The restarts that count against the backoff limit so far.
fn restarts_used<J>(draft: &Draft<'_, J>, survey: &Survey<'_>) -> i32 {
    let stored = draft.status.restart_count.max(0);
    stored.saturating_add(survey.in_place.fresh)
}

/// The limit that these failures, or the restarts in place, are one too many for, in words.
///
/// A limit of n allows n restarts by the operator, and fails the job at the next failure. Restarts by
/// the kubelet have happened when they are seen: they fail the job when the n-th is seen (the first,
/// if n is 0), as under the Go operator.
fn exceeded_limit<J: TrainingJob>(
    draft: &Draft<'_, J>,
    survey: &Survey<'_>,
    failed: &[FailedReplica<'_, '_>],
) -> Option<String> {
    let counted = failed.iter().filter(|f| f.counts);
    let needed = i32::try_from(restart_scopes(counted).len()).unwrap_or(i32::MAX);
    let exceeds = |limit: i32, used: i32| used.saturating_add(needed) > limit;
    let is_new = needed > 0 || survey.in_place.fresh > 0;
    let policy = &draft.job.policy;
    let all = restarts_used(draft, survey);
    // The Go operator does not wait for a failure after the last restart if it was the kubelet's.
    let is_last = |limit: i32| survey.in_place.fresh > 0 && all >= limit.max(1);
    let is_over = |limit: &i32| is_last(*limit) || needed > 0 && exceeds(*limit, all);
    if let Some(limit) = policy.backoff_limit.filter(is_over) {
        return Some(format!("backoffLimit {limit} is used up"));
    }
    let (limit, window) = (policy.failure.max_restarts?, policy.failure.window_seconds);
    let used = match window {
        None => all,
        Some(seconds) => {
            let stored = recovery::restarts_within(&draft.status.recovery, seconds, draft.now);
            stored.saturating_add(survey.in_place.fresh)
        }
    };
    let within = window
        .map(|seconds| format!(" within {seconds} s"))
        .unwrap_or_default();
    (is_new && exceeds(limit, used)).then(|| format!("maxRestarts {limit}{within} is used up"))
}

/// Until when a success is held, if there is reason to: the replicas that decided have just ended, and
/// others still run. The processes of a cluster that has done its work end within a moment of each
/// other. They should not be killed in it, and one that fails in it tells that the work was not done:
/// when all workers of a training raise an error, its scheduler ends well all the same.
fn held_until<J: TrainingJob>(draft: &Draft<'_, J>, survey: &Survey<'_>) -> Option<Timestamp> {
    let runs = |s: &Standing| matches!(s, Standing::Running | Standing::Pending);
    let any_runs = |role: &RoleStanding<'_>| role.replicas.iter().any(runs);
    if !survey.roles.iter().any(any_runs) {
        return None;
    }
    let has_succeeded = |s: &&Standing| matches!(s, Standing::Succeeded);
    let replicas = draft.job.topology.all();
    let standings = survey.roles.iter().flat_map(|role| &role.replicas);
    let ended = replicas.zip(standings).filter(|(_, s)| has_succeeded(s));
    let pods = ended.filter_map(|(replica, _)| draft.observed.pods.get(&replica.host()));
    let last = pods.filter_map(|pod| pod.seen_to_end).max()?;
    let until = last.checked_add(draft.job.policy.success_grace_period).ok()?;
    // A clock that was set back makes nobody wait for longer.
    (last <= draft.exact_now && draft.exact_now < until).then_some(until)
}

/// Until when a final failure by exit code is held, if there is reason to: others that restart together with the replica
/// run as far as is known, and one of them may have failed first.
fn failure_held_until<J>(
    draft: &Draft<'_, J>,
    survey: &Survey<'_>,
    failed: &FailedReplica<'_, '_>,
) -> Option<Timestamp> {
    let role = failed.replica.role;
    let runs = |of: &&RoleStanding<'_>| {
        let mut standings = of.replicas.iter();
        restart_together(&of.scope, of.role, role) && standings.any(|s| matches!(s, Standing::Running))
    };
    let by_code = failed.consequence == Consequence::FinalByExitCode;
    survey.roles.iter().find(runs).filter(|_| by_code)?;
    let seen = draft.observed.pods.get(&failed.replica.host())?.seen_to_end?;
    let until = seen.checked_add(draft.job.policy.failure_grace_period).ok()?;
    // A clock that was set back makes nobody wait for longer.
    (seen <= draft.exact_now && draft.exact_now < until).then_some(until)
}

/// The failure of a job whose deadline has passed. It names the first pod that never started, if
/// there is one: that is what most such jobs wait for.
fn out_of_time<J: TrainingJob>(draft: &Draft<'_, J>) -> FailureRecord {
    let job = draft.job;
    let mut pods = job
        .topology
        .all()
        .filter_map(|r| draft.observed.pods.get(&r.host()));
    let pending = pods.find(|pod| pod.phase == Phase::Pending && !pod.deleting);
    let mut message = format!(
        "the job did not end within activeDeadlineSeconds ({} s)",
        job.policy.active_deadline_seconds.unwrap_or_default()
    );
    if let Some(pod) = pending {
        message += &format!("; pod {} never started", pod.name);
        if let Some((reason, why)) = pod.waits_for() {
            let why = if why.is_empty() {
                reason.clone()
            } else {
                format!("{reason}: {why}")
            };
            message += &format!(": {}", last_words(why, MAX_MESSAGE - message.len() - 2));
        }
    }
    FailureRecord {
        reason: end::DEADLINE.to_owned(),
        message,
        time: Some(Time(draft.now)),
        ..FailureRecord::default()
    }
}

/// The latest end of a container that the kubelet restarted in place.
fn latest_restart_in_place<J: TrainingJob>(draft: &Draft<'_, J>) -> Option<FailureRecord> {
    let failures = draft.job.topology.all().filter_map(|replica| {
        let pod = draft.observed.pods.get(&replica.host())?;
        let main = main_name(replica.role);
        Failure::of_restart(&replica, pod, counted_containers(pod, main))
    });
    let known = failures.filter(|f| f.record.time.is_some());
    known.max_by_key(Failure::time).map(|f| f.record)
}
