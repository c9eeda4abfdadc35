//! Decides the outcome of a survey for an active job. The verdict is a value; nothing is changed here.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::observed::{MAX_CLOCK_SKEW, MAX_MESSAGE, Phase, PodRecord, last_words};
use crate::api::{FailureAction, FailureRecord, JobStatus, Recovery, StallAction};
use crate::job::{FailureTolerance, Milestone, Outcome, Replica, ReplicaState, Replicas, Scope};
use crate::validate::ValidJob;

use super::facts::Facts;
use super::failure::{Consequence, Failure, FailureCause};
use super::limits::{self, Charge, RestartLimit};
use super::pod_end::{counted_containers, main_name};
use super::policy;
use super::stall::{Output, Stall};
use super::survey::{self, ObservedReplica, ObservedRole, Situation, Survey};
use super::{reasons, resize};

/// The decision about an active job.
#[derive(Debug)]
pub(super) enum JobVerdict<'s, 'a> {
    Failed {
        milestone: Milestone<'a>,
        record: Box<FailureRecord>,
        /// The exceeded limit of restarts as a text, if that is the cause.
        limit: Option<String>,
    },
    Succeeded,
    /// The job succeeds at this time, unless a replica that still runs fails before.
    SucceedsAt(Timestamp),
    /// The job fails at this time, unless an earlier failure of another replica is observed before.
    FailsAt(Timestamp),
    /// The job continues after these restarts.
    Restarts(Restarts<'s, 'a>),
    /// The whole job restarts, because its pods were created for other numbers of replicas than the spec has.
    Resizes {
        change: String,
        /// The latest attempt of the pods.
        ahead: u32,
    },
    GoesOn {
        /// True if the replicas that decide the job's state run.
        running: bool,
        /// True if the numbers of replicas have changed before any pod was created.
        is_resized: bool,
    },
}

/// Restarts of the job or of parts of it.
#[derive(Debug)]
pub(super) struct Restarts<'s, 'a> {
    /// The first reported failure.
    pub(super) root_cause: Option<FailedReplica<'s, 'a>>,
    /// One failure for each restarted scope: the job, or some roles and replicas.
    pub(super) scopes: Vec<FailedReplica<'s, 'a>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct FailedReplica<'s, 'a> {
    pub(super) replica: Replica<'a>,
    pod: Option<&'a PodRecord>,
    pub(super) scope: Scope,
    pub(super) failure: &'s Failure,
    /// True if the failure is reported; false if failures of the role are always tolerated.
    is_reported: bool,
    /// The limit that the restart counts against, if any; a rule of the failure policy can exclude it.
    pub(super) limit: Option<RestartLimit>,
    /// The pause before the restart that the kind requests.
    pub(super) pause: Duration,
    consequence: Consequence,
    /// True if the failure is a consequence of another one.
    is_secondary: bool,
}

impl<'a> FailedReplica<'_, 'a> {
    /// Returns the restart as it counts against a limit, if it does.
    fn charge(&self) -> Option<Charge<'a>> {
        let role = self.replica.role.name();
        self.limit.map(|limit| Charge { limit, role })
    }
}

/// Returns the verdict for a job that is neither finished nor suspended. A final failure takes precedence over success,
/// success over the deadline, and the deadline over the backoff limit. A job is stalled only if no replica has failed.
pub(super) fn judge<'s, 'a>(
    facts: &Facts<'_>,
    status: &JobStatus,
    survey: &'s Survey<'a>,
    output: Option<&'s Output<'a>>,
) -> JobVerdict<'s, 'a> {
    let job = facts.job;
    let mut failed = failures(job, &status.recovery, survey);
    let stopping = stopping(survey);
    mark_secondary_failures(&mut failed, &stopping);
    let outcome = outcome(job, &survey.states, &failed);
    if let Some(first) = first(failed.iter().filter(|f| f.consequence != Consequence::Restart)) {
        let period = job.policy.failure_grace_period;
        return match failure_grace_ends_at(survey, first, period, facts.exact_now) {
            Some(at) => JobVerdict::FailsAt(at),
            None => final_failure(job.policy.backoff_limit, &failed, first),
        };
    }
    if outcome == Outcome::Succeeded {
        return match success_grace_ends_at(survey, job.policy.success_grace_period, facts.exact_now) {
            Some(at) => JobVerdict::SucceedsAt(at),
            None => JobVerdict::Succeeded,
        };
    }
    if survey.deadline.is_some_and(|at| at <= facts.now) {
        return JobVerdict::Failed {
            milestone: Milestone::Deadline,
            record: Box::new(out_of_time(survey, job.policy.active_deadline_seconds, facts.now)),
            limit: None,
        };
    }
    if let Some(Stall {
        replica,
        pod,
        failure,
        ..
    }) = output.and_then(|output| output.stall.as_ref())
        && failed.is_empty()
    {
        match job.policy.progress.as_ref().map(|progress| &progress.on_stall) {
            Some(StallAction::Fail) => {
                return JobVerdict::Failed {
                    milestone: Milestone::FailedByStall,
                    record: Box::new(failure.record.clone()),
                    limit: None,
                };
            }
            Some(StallAction::Restart) => failed.push(FailedReplica {
                replica: *replica,
                pod: Some(pod),
                scope: Scope::Job,
                failure,
                is_reported: true,
                limit: Some(RestartLimit::Job),
                pause: Duration::ZERO,
                consequence: Consequence::Restart,
                is_secondary: false,
            }),
            _ => {}
        }
    }
    let root_cause = root_cause(&failed, &stopping);
    let scopes = restart_scopes(&failed);
    let charges: Vec<Charge<'_>> = scopes.iter().filter_map(FailedReplica::charge).collect();
    if let Some(limit) = limits::exceeded(facts, status, survey, &charges) {
        let root_cause = root_cause.map(|f| f.failure.record.clone());
        let root_cause = root_cause.or_else(|| latest_restart_in_place(survey));
        return JobVerdict::Failed {
            milestone: Milestone::BackoffLimit,
            record: Box::new(root_cause.unwrap_or_default()),
            limit: Some(limit),
        };
    }
    if failed.is_empty() {
        return goes_on(facts, status, outcome == Outcome::Running);
    }
    JobVerdict::Restarts(Restarts { root_cause, scopes })
}

/// Returns the verdict for a job without failures that are not tolerated.
fn goes_on<'s, 'a>(facts: &Facts<'_>, status: &JobStatus, running: bool) -> JobVerdict<'s, 'a> {
    let change = resize::change(facts.job, status);
    let change = change.or_else(|| resize::early_change(facts.job, facts.stored));
    let attempts = facts.observed.pods.values().map(|pod| pod.attempt);
    match (change, attempts.max()) {
        (Some(change), Some(ahead)) => JobVerdict::Resizes { change, ahead },
        (change, _) => JobVerdict::GoesOn {
            running,
            is_resized: change.is_some(),
        },
    }
}

/// Returns the failures that are not tolerated.
fn failures<'s, 'a>(
    job: &ValidJob<'_>,
    recovery: &Recovery,
    survey: &'s Survey<'a>,
) -> Vec<FailedReplica<'s, 'a>> {
    let mut failed = Vec::new();
    for ObservedRole {
        role,
        scope,
        replicas,
        ..
    } in &survey.roles
    {
        let tolerance = job.job.tolerance(role);
        let mut others = replicas.iter();
        let others_remain = others.any(|r| !matches!(r.situation, Situation::Failed(_)));
        for of_replica in replicas {
            let Situation::Failed(failure) = &of_replica.situation else {
                continue;
            };
            let action = policy::action(&job.policy.failure, role, failure, of_replica.pod);
            let answer = match action {
                None if job.job.framework().answers_failures => {
                    let failure = failure.for_hook(role, of_replica.replica.index);
                    job.job.on_failure(&job.topology, &failure)
                }
                _ => None,
            };
            let consequence = match (action, answer) {
                (None, None) => failure.consequence(&*job.job, role),
                (Some(FailureAction::FailJob), _) => Consequence::FinalByRule,
                _ => Consequence::Restart,
            };
            let is_ignored = action == Some(&FailureAction::Ignore);
            let is_final = consequence != Consequence::Restart;
            let answered = answer.map(|restart| restart.scope);
            let scope = action.and_then(policy::scope).or(answered).unwrap_or(*scope);
            // A rule can restart the whole job for a role whose failures are always tolerated.
            let is_always = tolerance == FailureTolerance::Always && scope != Scope::Job;
            let is_exhausted =
                || own_restarts_exhausted(job.policy.backoff_limit, recovery, &of_replica.replica);
            let is_tolerated = match tolerance {
                FailureTolerance::None => false,
                FailureTolerance::WhileOthersRemain => others_remain && is_final,
                FailureTolerance::Always => is_final || is_always && !is_ignored && is_exhausted(),
            };
            if !is_tolerated {
                let is_own = || survey::own_limit(job, role, scope).is_some();
                failed.push(FailedReplica {
                    replica: of_replica.replica,
                    pod: of_replica.pod,
                    scope,
                    failure,
                    is_reported: !is_always,
                    limit: (!is_always && !is_ignored).then(|| match answer.and_then(|a| a.uncounted) {
                        Some(in_an_hour) => RestartLimit::Hour(in_an_hour),
                        None if is_own() => RestartLimit::Role,
                        None => RestartLimit::Job,
                    }),
                    pause: answer.map_or(Duration::ZERO, |restart| restart.pause),
                    consequence,
                    is_secondary: false,
                });
            }
        }
    }
    failed
}

/// Returns the replicas whose pods are being deleted, with the failures that follow.
fn stopping<'s, 'a>(survey: &'s Survey<'a>) -> Vec<FailedReplica<'s, 'a>> {
    let of_role = |role: &'s ObservedRole<'a>| {
        role.replicas
            .iter()
            .filter_map(|of_replica| match &of_replica.situation {
                Situation::Stopping(failure) => Some(FailedReplica {
                    replica: of_replica.replica,
                    pod: of_replica.pod,
                    scope: role.scope,
                    failure,
                    is_reported: true,
                    limit: Some(RestartLimit::Job),
                    pause: Duration::ZERO,
                    consequence: Consequence::Restart,
                    is_secondary: false,
                }),
                _ => None,
            })
    };
    survey.roles.iter().flat_map(of_role).collect()
}

/// The limit in the failure record of a job that may not restart.
const NO_RESTARTS: &str = "backoffLimit 0 is used up";

/// Maximum time after a failure in which another failure counts as its consequence.
const MAX_SECONDARY_DELAY: SignedDuration = SignedDuration::from_secs(10);

/// Marks the failures that are consequences of another failure. Processes that train together end when one of them is gone,
/// with any exit code. If that one is restarted, the exit codes of the others do not fail the job.
fn mark_secondary_failures(failed: &mut [FailedReplica<'_, '_>], stopping: &[FailedReplica<'_, '_>]) {
    let restarting = failed.iter().filter(|f| f.consequence == Consequence::Restart);
    let causes: Vec<_> = restarting.chain(stopping).copied().collect();
    for follower in failed {
        let is_judged_by_code = follower.consequence == Consequence::FinalByExitCode;
        if is_judged_by_code && causes.iter().any(|cause| is_caused_by(follower, cause)) {
            follower.consequence = Consequence::Restart;
            follower.is_secondary = true;
        }
    }
}

/// Returns true if `follower` is a consequence of `cause`: they restart together, and `follower` is not the earlier one.
/// After the loss of a pod there is no limit between the two, because the other processes may run for as long as the grace
/// period of that pod, and because the time of the loss may be unknown. Before it, the difference of clocks is the limit.
fn is_caused_by(follower: &FailedReplica<'_, '_>, cause: &FailedReplica<'_, '_>) -> bool {
    if !cause.replica.role.restarts(follower.replica.role, cause.scope) {
        return false;
    }
    if cause.failure.record.time.is_none() {
        return true;
    }
    let delay = follower.failure.time().duration_since(cause.failure.time());
    match cause.failure.cause {
        // The clock of the API server has the time of the loss, and that of a node the time of the other failure.
        FailureCause::Lost => delay >= -MAX_CLOCK_SKEW,
        _ => (SignedDuration::ZERO..=MAX_SECONDARY_DELAY).contains(&delay),
    }
}

/// Returns the first reported failure that is not a consequence of another one.
fn root_cause<'s, 'a>(
    failed: &[FailedReplica<'s, 'a>],
    stopping: &[FailedReplica<'s, 'a>],
) -> Option<FailedReplica<'s, 'a>> {
    let reported = || failed.iter().filter(|f| f.is_reported);
    let cause = first(reported().filter(|f| !f.is_secondary));
    let of_followers = || reported().next().and_then(|_| stopping.first());
    cause.or_else(of_followers).copied()
}

/// Returns true if a replica whose failures are always tolerated has been restarted `backoffLimit` times, alone or with its
/// role.
fn own_restarts_exhausted(limit: Option<i32>, recovery: &Recovery, replica: &Replica<'_>) -> bool {
    let alone = recovery.replicas.get(&replica.key()).copied().unwrap_or(0);
    let with_role = recovery.roles.get(replica.role.name()).copied().unwrap_or(0);
    limit.is_some_and(|limit| alone.max(0).saturating_add(with_role.max(0)) >= limit)
}

/// Returns the outcome of the replicas' states. Replicas whose failures are not tolerated count as absent.
fn outcome(job: &ValidJob<'_>, states: &Replicas<'_>, failed: &[FailedReplica<'_, '_>]) -> Outcome {
    if failed.is_empty() {
        return job.outcome(states);
    }
    let mut states = states.clone();
    for failed in failed {
        states.set(failed.replica, ReplicaState::Absent);
    }
    job.outcome(&states)
}

fn final_failure<'s, 'a>(
    backoff_limit: Option<i32>,
    failed: &[FailedReplica<'s, 'a>],
    first: &FailedReplica<'s, 'a>,
) -> JobVerdict<'s, 'a> {
    let role = first.replica.role.name();
    let record = first.failure.record.clone();
    let mut limit = None;
    let milestone = match first.consequence {
        Consequence::FinalByExitCode => Milestone::FailedPermanently { role },
        Consequence::FinalByRule => Milestone::FailedByRule { role },
        // Without any restarts, the Go operator reports each failure as an exceeded limit.
        _ if backoff_limit == Some(0) => {
            limit = Some(NO_RESTARTS.to_owned());
            Milestone::BackoffLimit
        }
        _ => {
            let is_final = |f: &&FailedReplica<'_, '_>| {
                f.replica.role.name() == role && f.consequence == Consequence::Final
            };
            let count = failed.iter().filter(is_final).count();
            Milestone::Failed { role, count }
        }
    };
    JobVerdict::Failed {
        milestone,
        record: Box::new(record),
        limit,
    }
}

/// Returns the first failure; of several at the same time, that of the first replica.
fn first<'f, 's: 'f, 'a: 'f>(
    failed: impl Iterator<Item = &'f FailedReplica<'s, 'a>>,
) -> Option<&'f FailedReplica<'s, 'a>> {
    failed.min_by_key(|f| f.failure.time())
}

/// Returns one failure for each restarted scope: the job, or some roles and replicas. The restart of a scope counts if any
/// failure in it does that is not the consequence of one that does not count.
fn restart_scopes<'s, 'a>(failed: &[FailedReplica<'s, 'a>]) -> Vec<FailedReplica<'s, 'a>> {
    let whole = first(failed.iter().filter(|f| f.scope == Scope::Job));
    let mut restarted: Vec<&FailedReplica<'s, 'a>> = Vec::new();
    for failed in failed
        .iter()
        .filter(|f| whole.is_none_or(|whole| std::ptr::eq(*f, whole)))
    {
        let role = failed.replica.role;
        let mut before = restarted.iter();
        let is_covered = before.any(|f| f.scope == failed.scope && f.replica.role.restarts(role, f.scope));
        if !is_covered {
            restarted.push(failed);
        }
    }
    let with_limit = |of: &FailedReplica<'s, 'a>| {
        let (scope, role) = (of.scope, of.replica.role);
        let is_covered = |f: &&FailedReplica<'_, '_>| {
            role.restarts(f.replica.role, scope) && (whole.is_some() || f.scope == scope)
        };
        let others = failed.iter().filter(is_covered).filter(|f| !is_caused_by(f, of));
        let limits: Vec<_> = of
            .limit
            .into_iter()
            .chain(others.filter_map(|f| f.limit))
            .collect();
        let of_policies = limits
            .iter()
            .find(|limit| !matches!(limit, RestartLimit::Hour(_)));
        let limit = of_policies.or(limits.first()).map(|limit| match (whole, limit) {
            (Some(_), RestartLimit::Role) => RestartLimit::Job,
            (_, limit) => *limit,
        });
        let pauses = failed.iter().filter(is_covered).map(|f| f.pause);
        let pause = pauses.chain([of.pause]).max().unwrap_or_default();
        FailedReplica { limit, pause, ..*of }
    };
    restarted.into_iter().map(with_limit).collect()
}

/// Returns the end of the grace period before a success, if one is in effect: the deciding replicas have just ended, and
/// others still run. The processes of a completed training end within a moment of each other and should not be killed in
/// it. A failure in it means that the training was not completed: if all workers raise an error, a scheduler still ends with
/// exit code 0.
fn success_grace_ends_at(survey: &Survey<'_>, period: Duration, now: Timestamp) -> Option<Timestamp> {
    let runs =
        |r: &ObservedReplica<'_>| matches!(r.situation, Situation::Running { .. } | Situation::Pending);
    if !survey.replicas().any(runs) {
        return None;
    }
    let ended = survey
        .replicas()
        .filter(|r| matches!(r.situation, Situation::Succeeded));
    let last = ended.filter_map(|r| r.pod?.seen_to_end).max()?;
    let until = last.checked_add(period).ok()?;
    // If the clock was set back, there is no grace period.
    (last <= now && now < until).then_some(until)
}

/// Returns the end of the grace period before a final failure by exit code, if one is in effect: replicas that restart
/// together with the failed one seem to run, and one of them may have failed first.
fn failure_grace_ends_at(
    survey: &Survey<'_>,
    failed: &FailedReplica<'_, '_>,
    period: Duration,
    now: Timestamp,
) -> Option<Timestamp> {
    let role = failed.replica.role;
    let runs = |of: &&ObservedRole<'_>| {
        let mut replicas = of.replicas.iter();
        of.role.restarts(role, of.scope) && replicas.any(|r| matches!(r.situation, Situation::Running { .. }))
    };
    let by_code = failed.consequence == Consequence::FinalByExitCode;
    survey.roles.iter().find(runs).filter(|_| by_code)?;
    let seen = failed.pod?.seen_to_end?;
    let until = seen.checked_add(period).ok()?;
    // If the clock was set back, there is no grace period.
    (seen <= now && now < until).then_some(until)
}

/// Returns the failure record of a job that exceeded its deadline. It names the first pod that never started, if any,
/// because that is the most frequent cause.
fn out_of_time(survey: &Survey<'_>, seconds: Option<i64>, now: Timestamp) -> FailureRecord {
    let mut pods = survey.replicas().filter_map(|r| r.pod);
    let pending = pods.find(|pod| pod.phase == Phase::Pending && !pod.deleting);
    let mut message = format!(
        "the job did not end within activeDeadlineSeconds ({} s)",
        seconds.unwrap_or_default()
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
        reason: reasons::DEADLINE_EXCEEDED.to_owned(),
        message,
        time: Some(Time(now)),
        ..FailureRecord::default()
    }
}

/// Returns the failure record of the latest restart in place.
fn latest_restart_in_place(survey: &Survey<'_>) -> Option<FailureRecord> {
    let failures = survey.replicas().filter_map(|of_replica| {
        let (pod, replica) = (of_replica.pod?, &of_replica.replica);
        Failure::of_restart(replica, pod, counted_containers(pod, main_name(replica.role)))
    });
    let known = failures.filter(|f| f.record.time.is_some());
    known.max_by_key(Failure::time).map(|f| f.record)
}
