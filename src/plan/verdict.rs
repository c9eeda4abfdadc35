//! The verdict on an active job, and what follows from it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{ConditionStatus, ConditionType, FailureRecord, RestartScope};
use crate::job::Replica;
use crate::job::{FailureTolerance, Outcome, ReplicaState};
use crate::job::{Milestone, TrainingJob};
use crate::plan::observed::{MAX_MESSAGE, Phase, last_words};

use super::failure::{Failure, Verdict};
use super::standing::{self, RoleStanding, Standing};
use super::{Draft, children, end, ledger, notices};

/// A failed replica.
struct Failed<'s, 'a> {
    replica: Replica<'a>,
    scope: &'s RestartScope,
    failure: &'s Failure,
    verdict: Verdict,
}

/// Plans for a job that is neither finished nor suspended.
pub(super) fn advance<J: TrainingJob>(draft: &mut Draft<'_, J>) {
    let job = draft.job;
    draft.begin();
    if draft.status.start_time.is_none() {
        draft.start_clock();
    }
    let in_place = count_restarts_in_place(draft);
    let survey = standing::survey(job, &draft.status, draft.observed);
    let mut states = standing::states(&job.topology, &survey);
    draft.count(&states);
    remember_progress(draft, &survey);

    let failed = failures(draft, &survey);
    for failed in &failed {
        states.set(failed.replica, ReplicaState::Absent);
    }
    let outcome = job.job.outcome(&states);
    let deadline = deadline(draft);
    if let Some(first) = first(failed.iter().filter(|f| f.verdict != Verdict::Restart)) {
        let role = first.replica.role.name();
        let record = first.failure.record.clone();
        let (warning, milestone) = match first.verdict {
            // Where no restart is allowed, no failure is: that is what the Go operator tells of each.
            _ if draft.job.policy.backoff_limit == Some(0) => (true, Milestone::BackoffLimit),
            Verdict::FinalByExitCode => (true, Milestone::FailedPermanently { role }),
            _ => (
                false,
                Milestone::Failed {
                    role,
                    count: failures_of(&failed, role),
                },
            ),
        };
        end::fail(draft, warning, &milestone, record);
    } else if outcome == Outcome::Succeeded {
        match held_until(draft, &survey) {
            Some(at) => draft.plan.requeue_at(at, "replicas are about to end"),
            None => end::succeed(draft),
        }
    } else if deadline.is_some_and(|at| at <= draft.now) {
        let record = out_of_time(draft);
        end::fail(draft, true, &Milestone::Deadline, record);
    } else if exceeds_limit(draft, in_place, &failed) {
        let record = first(failed.iter())
            .map(|f| f.failure.record.clone())
            .or(latest_restart(draft));
        end::fail(draft, true, &Milestone::BackoffLimit, record.unwrap_or_default());
    } else {
        if let Some(at) = deadline {
            draft.plan.requeue_at(at, "activeDeadlineSeconds");
        }
        notices::add(draft);
        if failed.is_empty() {
            if outcome == Outcome::Running {
                draft.set(
                    ConditionType::Running,
                    ConditionStatus::True,
                    "Running",
                    &Milestone::Running,
                );
            }
            children::settle(draft, &survey);
        } else {
            restart(draft, &failed);
        }
    }
}

/// Until when a success is held, if there is reason to: the replicas that decided have just ended, and
/// others still run. The processes of a cluster that has done its work end within a moment of each
/// other. They should not be killed in it, and one that fails in it tells that the work was not done:
/// when all workers of a training raise an error, its scheduler ends well all the same.
fn held_until<J>(draft: &Draft<'_, J>, survey: &[RoleStanding<'_>]) -> Option<Timestamp> {
    let runs = |s: &Standing| matches!(s, Standing::Running | Standing::Pending);
    if !survey.iter().any(|role| role.replicas.iter().any(runs)) {
        return None;
    }
    let ends = draft
        .observed
        .pods
        .values()
        .filter(|pod| pod.phase == Phase::Succeeded);
    let last = ends.filter_map(|pod| pod.seen_to_end).max()?;
    let until = last.checked_add(draft.job.policy.linger).ok()?;
    // A clock that was set back makes nobody wait for longer.
    (last <= draft.exact_now && draft.exact_now < until).then_some(until)
}

/// Counts what the kubelet restarted in place since it was last counted, where replicas restart one
/// by one; where they restart together, such a restart is a failure like any other. Returns whether
/// there was any.
fn count_restarts_in_place<J: TrainingJob>(draft: &mut Draft<'_, J>) -> bool {
    let job = draft.job;
    let mut seen = BTreeMap::new();
    let mut fresh = 0_i32;
    for replica in job.topology.all() {
        let never_matters = job.job.tolerance(replica.role) == FailureTolerance::Always;
        if never_matters || job.restart_scope(replica.role) != RestartScope::Replica {
            continue;
        }
        let name = replica.host();
        let Some(pod) = draft.observed.pods.get(&name) else {
            continue;
        };
        let key = replica.key();
        let known = draft
            .status
            .recovery
            .in_place
            .get(&key)
            .copied()
            .unwrap_or(0)
            .max(0);
        let attempt = ledger::attempt(&draft.status.recovery, replica.role, replica.index);
        if ledger::is_outdated(pod.attempt, attempt) {
            continue;
        }
        let live = pod.restarts();
        fresh = fresh.saturating_add(live.saturating_sub(known).max(0));
        if live.max(known) > 0 {
            seen.insert(key, live.max(known));
        }
    }
    draft.status.recovery.in_place = seen;
    ledger::charge(&mut draft.status, fresh);
    fresh > 0
}

/// Enters in the status which replicas have started and which have completed.
fn remember_progress<J>(draft: &mut Draft<'_, J>, survey: &[RoleStanding<'_>]) {
    let recovery = &mut draft.status.recovery;
    for of_role in survey {
        let name = of_role.role.name();
        let completed: BTreeSet<u32> = (0..)
            .zip(&of_role.replicas)
            .filter(|(_, s)| matches!(s, Standing::Succeeded))
            .map(|(index, _)| index)
            .collect();
        if completed.is_empty() {
            recovery.completed.remove(name);
        } else {
            recovery
                .completed
                .insert(name.to_owned(), ledger::format_indexes(&completed));
        }
        if of_role.scope == RestartScope::Replica {
            recovery.started.remove(name);
            continue;
        }
        let has_pod = |s: &&Standing| !matches!(s, Standing::Missing | Standing::Outdated(_));
        let prefix = of_role.replicas.iter().take_while(has_pod).count();
        // The last ones may be on their way out since the role was smaller for a while: they are no loss.
        let leaving = |s: &&Standing| matches!(s, Standing::Stopping);
        let surplus = of_role.replicas[..prefix]
            .iter()
            .rev()
            .take_while(leaving)
            .count();
        let started = u32::try_from(prefix - surplus)
            .unwrap_or(u32::MAX)
            .max(ledger::started(recovery, of_role.role));
        if started == 0 {
            recovery.started.remove(name);
        } else {
            recovery
                .started
                .insert(name.to_owned(), i32::try_from(started).unwrap_or(i32::MAX));
        }
    }
    let known = |name: &str| survey.iter().any(|r| r.role.name() == name);
    recovery.started.retain(|name, _| known(name));
    recovery.completed.retain(|name, _| known(name));
}

fn failures<'s, 'a, J: TrainingJob>(
    draft: &Draft<'_, J>,
    survey: &'s [RoleStanding<'a>],
) -> Vec<Failed<'s, 'a>> {
    let limit = draft.job.policy.backoff_limit;
    let no_restarts_left = limit.is_some_and(|limit| draft.status.restart_count >= limit);
    let mut failed = Vec::new();
    for of_role in survey {
        let tolerance = draft.job.job.tolerance(of_role.role);
        let others_remain = of_role.replicas.iter().any(|s| !matches!(s, Standing::Failed(_)));
        for (index, standing) in (0..).zip(&of_role.replicas) {
            if let Standing::Failed(failure) = standing {
                let verdict = failure.verdict(draft.job.job, of_role.role);
                let tolerated = match tolerance {
                    FailureTolerance::None => false,
                    FailureTolerance::WhileOthersRemain => others_remain && verdict != Verdict::Restart,
                    FailureTolerance::Always => no_restarts_left || verdict != Verdict::Restart,
                };
                if tolerated {
                    continue;
                }
                let replica = Replica {
                    role: of_role.role,
                    index,
                };
                failed.push(Failed {
                    replica,
                    scope: &of_role.scope,
                    failure,
                    verdict,
                });
            }
        }
    }
    failed
}

/// The failure that came first; of several at the same time, that of the first replica.
fn first<'f, 's: 'f, 'a: 'f>(failed: impl Iterator<Item = &'f Failed<'s, 'a>>) -> Option<&'f Failed<'s, 'a>> {
    failed.min_by_key(|f| f.failure.time())
}

fn failures_of(failed: &[Failed<'_, '_>], role: &str) -> usize {
    failed
        .iter()
        .filter(|f| f.replica.role.name() == role && f.verdict == Verdict::Final)
        .count()
}

/// The scopes that restart for these failures: the job, or some roles and replicas.
fn restarts<'f, 's, 'a>(failed: &'f [Failed<'s, 'a>]) -> Vec<&'f Failed<'s, 'a>> {
    if let Some(whole) = first(failed.iter().filter(|f| *f.scope == RestartScope::Job)) {
        return vec![whole];
    }
    let mut roles = BTreeSet::new();
    failed
        .iter()
        .filter(|f| *f.scope != RestartScope::Role || roles.insert(f.replica.role.name()))
        .collect()
}

/// Whether these failures, or the restarts in place already counted, are one too many.
///
/// A limit of n allows n restarts by the operator, and fails the job at the next failure. Restarts by
/// the kubelet have happened when they are seen: they fail the job when the n-th is seen (the first,
/// if n is 0), as under the Go operator.
fn exceeds_limit<J: TrainingJob>(draft: &Draft<'_, J>, in_place: bool, failed: &[Failed<'_, '_>]) -> bool {
    let Some(limit) = draft.job.policy.backoff_limit else {
        return false;
    };
    let used = draft.status.restart_count;
    let needed = i32::try_from(restarts(failed).len()).unwrap_or(i32::MAX);
    (in_place && used >= limit.max(1)) || (needed > 0 && used.saturating_add(needed) > limit)
}

fn restart<J: TrainingJob>(draft: &mut Draft<'_, J>, failed: &[Failed<'_, '_>]) {
    let Some(cause) = first(failed.iter()) else { return };
    let scopes = restarts(failed);
    ledger::charge(&mut draft.status, i32::try_from(scopes.len()).unwrap_or(i32::MAX));
    for one in scopes {
        let step = step(draft, one);
        ledger::restart(&mut draft.status.recovery, one.scope, &one.replica, step);
    }
    draft.status.failure = Some(cause.failure.record.clone());
    let milestone = Milestone::Restarting {
        role: cause.replica.role.name(),
    };
    draft.set(
        ConditionType::Restarting,
        ConditionStatus::True,
        "Restarting",
        &milestone,
    );
    let message = draft.job.job.message(&milestone);
    draft.event(true, "Restarting", message);
    // The failed pods belong to the past now.
    let after = standing::survey(draft.job, &draft.status, draft.observed);
    draft.count(&standing::states(&draft.job.topology, &after));
}

/// By how much the attempt of what restarts must rise for all its pods to be of an earlier one: by
/// 1, or more if the status was lost and its pods are ahead of it.
fn step<J: TrainingJob>(draft: &Draft<'_, J>, failed: &Failed<'_, '_>) -> i32 {
    let topology = &draft.job.topology;
    let concerned = |replica: &Replica<'_>| match failed.scope {
        RestartScope::Job => true,
        RestartScope::Role => replica.role.name() == failed.replica.role.name(),
        _ => replica.key() == failed.replica.key(),
    };
    let ahead = topology.all().filter(concerned).filter_map(|replica| {
        let pod = draft.observed.pods.get(&replica.host())?;
        let attempt = ledger::attempt(&draft.status.recovery, replica.role, replica.index);
        let is_outdated = ledger::is_outdated(pod.attempt, attempt);
        i32::try_from(pod.attempt.checked_sub(attempt)?)
            .ok()
            .filter(|_| !is_outdated)
    });
    ahead.max().unwrap_or(0).saturating_add(1)
}

fn deadline<J: TrainingJob>(draft: &Draft<'_, J>) -> Option<Timestamp> {
    let seconds = draft.job.policy.active_deadline_seconds?;
    let start = draft.status.start_time.as_ref()?.0;
    // A deadline beyond the end of time never comes.
    start.checked_add(SignedDuration::from_secs(seconds)).ok()
}

/// The failure of a job whose deadline has passed. It names the first pod that never started, if
/// there is one: that is what most such jobs wait for.
fn out_of_time<J: TrainingJob>(draft: &Draft<'_, J>) -> FailureRecord {
    let job = draft.job;
    let names = job.topology.all().map(|r| r.host());
    let mut pods = names.filter_map(|name| draft.observed.pods.get(&name));
    let pending = pods.find(|pod| pod.phase == Phase::Pending && !pod.deleting);
    let mut message = format!(
        "the job did not end within activeDeadlineSeconds ({} s)",
        job.policy.active_deadline_seconds.unwrap_or_default()
    );
    if let Some(pod) = pending {
        message += &format!("; {} never started", pod.name);
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
fn latest_restart<J: TrainingJob>(draft: &Draft<'_, J>) -> Option<FailureRecord> {
    let job = draft.job;
    let failures = job.topology.all().filter_map(|replica| {
        let pod = draft.observed.pods.get(&replica.host())?;
        Failure::of_restart(&replica, pod, pod.containers.iter(), J::FRAMEWORK.container)
    });
    let known = failures.filter(|f| f.record.time.is_some());
    known.max_by_key(Failure::time).map(|f| f.record)
}
