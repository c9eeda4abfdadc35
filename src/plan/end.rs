//! Ends a job: final status and clean-up.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::observed::{MAX_MESSAGE, Observed, Phase, PodRecord, last_words};
use crate::api::{CleanPodPolicy, ConditionStatus, ConditionType, FailureRecord, JobStatus};
use crate::job::{Milestone, Role};
use crate::render;

use super::draft::Draft;
use super::objects;
use super::pod_end::{PodEnd, end_of, ends_by_itself};
use super::reasons;
use super::relabel;
use super::ttl;
use super::types::{ChildKind, Deletion};

pub(super) fn succeed(draft: &mut Draft<'_>) {
    draft.set(
        ConditionType::Succeeded,
        ConditionStatus::True,
        reasons::SUCCEEDED,
        &Milestone::Succeeded,
    );
    let message = draft.job.job.message(&Milestone::Succeeded);
    draft.event(false, reasons::SUCCEEDED, message);
    draft.status.set_failure(None);
    mark_ended(draft);
}

/// Fails the job. `limit` describes the limit of restarts that the failure exceeded, if any.
pub(super) fn fail(
    draft: &mut Draft<'_>,
    milestone: &Milestone<'_>,
    record: FailureRecord,
    limit: Option<&str>,
) {
    let of_container = record.exit_code.map(|_| describe(&record));
    let record = match limit {
        Some(limit) => out_of_restarts(limit, record),
        None => record,
    };
    let cause = of_container.unwrap_or_else(|| describe(&record));
    draft.status.set_failure(Some(record));
    draft.set(
        ConditionType::Failed,
        ConditionStatus::True,
        reasons::FAILED,
        milestone,
    );
    let message = draft.job.job.message(milestone);
    draft.event(true, reasons::FAILED, format!("{message} ({cause})"));
    mark_ended(draft);
}

/// Returns the pod and the cause of a failure in short, for an event: `job-worker-1: exit code 3`.
fn describe(record: &FailureRecord) -> String {
    let reason = Some(record.reason.as_str());
    let reason = reason.filter(|reason| ![reasons::ERROR, reasons::BACKOFF_LIMIT_EXCEEDED].contains(reason));
    let cause = match (record.exit_code, reason) {
        (Some(code), None) => format!("exit code {code}"),
        (Some(code), Some(reason)) => format!("{reason}, exit code {code}"),
        (None, Some(reason)) if record.pod.is_some() => reason.to_owned(),
        // The record of a limit or deadline without an exit code names the cause in its message.
        (None, _) => record.message.clone(),
    };
    match &record.pod {
        Some(pod) => format!("{pod}: {cause}"),
        None => cause,
    }
}

/// Returns the failure record of a job that may not restart again. `limit` describes the exceeded limit, and `last` is the
/// failure that exceeded it.
fn out_of_restarts(limit: &str, last: FailureRecord) -> FailureRecord {
    let summary = last.summary_with(Some(reasons::BACKOFF_LIMIT_EXCEEDED));
    let because = match last.message.is_empty() {
        true => last.reason,
        false => last.message,
    };
    let limit = format!("{limit}; the last failure: ");
    FailureRecord {
        message: format!("{limit}{}", last_words(because, MAX_MESSAGE - limit.len())),
        reason: reasons::BACKOFF_LIMIT_EXCEEDED.to_owned(),
        summary,
        ..last
    }
}

fn mark_ended(draft: &mut Draft<'_>) {
    draft.status.completion_time = Some(Time(draft.now));
    settle_counts(draft);
}

/// Sets the final counts. Replicas whose pods are about to be deleted are not active. In a job that has succeeded, replicas
/// that still run count as succeeded under any clean-up policy. The Go operator counts in the same way
/// (`pkg/controller.v1/common/job.go` of v1.8.1), and clients wait until all replicas of a role have succeeded.
fn settle_counts(draft: &mut Draft<'_>) {
    let succeeded = draft.status.is(ConditionType::Succeeded);
    let stop_running = must_stop_running(draft.job.policy.clean_pods.clone(), &draft.status);
    let roles = &draft.job.topology.roles;
    for (name, count) in &mut draft.status.replica_statuses {
        let role = roles.iter().find(|role| role.name() == name.as_str());
        let replicas = role.map_or(0, |role| i32::try_from(role.replicas).unwrap_or(i32::MAX));
        if succeeded && count.active > 0 {
            let most = replicas.saturating_sub(count.failed).max(count.succeeded);
            count.succeeded = count.succeeded.saturating_add(count.active).min(most);
        }
        if succeeded || stop_running {
            count.active = 0;
            continue;
        }
        // A replica is active while its pod may run and its framework container has not ended.
        let runs = |pod: &&Arc<PodRecord>| {
            let is_of_role = |role: &&Role<'_>| role.may_have(&pod.name);
            let goes_on = |role: &Role<'_>| end_of(pod, role).is_none();
            let may_run = pod.phase == Phase::Running && !pod.deleting;
            may_run && role.filter(is_of_role).is_some_and(goes_on)
        };
        let running = draft.observed.pods.values().filter(runs).count();
        // A pod in which a container was restarted runs, and its replica may be counted as failed.
        let ended = count.succeeded.saturating_add(count.failed);
        let most = replicas.saturating_sub(ended).max(0);
        count.active = i32::try_from(running).unwrap_or(i32::MAX).min(most);
    }
}

/// Limits the active counts of a finished job to the number of its running pods. It is for a job with an invalid spec, whose
/// roles are unknown.
pub(super) fn bound_active(status: &mut JobStatus, observed: &Observed) {
    let pods = observed.pods.values();
    let running = pods
        .filter(|pod| pod.phase == Phase::Running && !pod.deleting)
        .count();
    let most = match status.is(ConditionType::Succeeded) {
        true => 0,
        false => i32::try_from(running).unwrap_or(i32::MAX),
    };
    for count in status.replica_statuses.values_mut() {
        count.active = count.active.min(most);
    }
}

/// Plans a finished job: clean-up and time to live. Nothing is created, and the result never changes.
pub(super) fn plan_finished(draft: &mut Draft<'_>) {
    fill_completion_time(&mut draft.status, draft.now);
    settle_counts(draft);
    let works_until = clean_up(draft);
    relabel::repair(draft);
    objects::end(draft);
    if let Some(until) = works_until {
        draft.plan.requeue_at(until, "sidecarGracePeriodSeconds");
        return;
    }
    let seconds = draft.job.policy.ttl_seconds;
    ttl::apply_ttl(&mut draft.plan, &draft.status, seconds, draft.now);
}

/// Returns the time until which containers beside the framework's may continue in replicas that have ended, if that is
/// in the future: the grace period after the end of the job, or the job's deadline if that is earlier.
fn sidecars_end_at(draft: &Draft<'_>) -> Option<Timestamp> {
    let policy = &draft.job.policy;
    let ended = draft.status.completion_time.as_ref()?.0;
    let grace = SignedDuration::from_secs(policy.sidecar_grace_seconds);
    let until = ended.checked_add(grace).ok()?;
    let until = draft.deadline().map_or(until, |deadline| until.min(deadline));
    (draft.now < until && policy.clean_pods != CleanPodPolicy::All).then_some(until)
}

/// Sets the completion time of a finished job if it is missing. The Go operator leaves it out after a permanent exit code.
pub(super) fn fill_completion_time(status: &mut JobStatus, now: Timestamp) {
    if status.completion_time.is_none() {
        let terminal = [ConditionType::Succeeded, ConditionType::Failed];
        let ended = terminal
            .iter()
            .find_map(|t| status.condition(*t)?.last_transition_time.clone())
            .filter(|ended| ended.0 <= now);
        status.completion_time = Some(ended.unwrap_or(Time(now)));
    }
}

/// Plans the clean-up. Returns the end of the grace period of sidecars if a pod is kept because of them.
fn clean_up(draft: &mut Draft<'_>) -> Option<Timestamp> {
    let policy = draft.job.policy.clean_pods.clone();
    let stop_running = must_stop_running(policy.clone(), &draft.status);
    let sidecars_end_at = sidecars_end_at(draft);
    let roles = &draft.job.topology.roles;
    let runs = |pod: &PodRecord| !pod.is_terminal() && !ends_by_itself(pod);
    // The state of the job is decided, but containers beside the framework's may have work to finish.
    let only_sidecars_run = |pod: &PodRecord| {
        let role = roles.iter().find(|role| role.may_have(&pod.name));
        let end = role.and_then(|role| end_of(pod, role));
        runs(pod) && end.is_some_and(|end| end != PodEnd::TakenAway)
    };
    let is_kept = |pod: &PodRecord| sidecars_end_at.is_some() && only_sidecars_run(pod);
    let runs_on = |pod: &PodRecord| runs(pod) && !is_kept(pod);
    let goes = |pod: &PodRecord| policy == CleanPodPolicy::All || (stop_running && runs_on(pod));
    let observed = draft.observed;
    for pod in observed.pods.values().filter(|p| !p.deleting && goes(p)) {
        draft
            .plan
            .delete
            .push(Deletion::new(ChildKind::Pod, &pod.name, &pod.uid));
    }
    // A finished pod that stays keeps its headless service. A cluster IP is scarce, and is given back under any policy when
    // its pod no longer listens.
    let stays = |pod: &Arc<PodRecord>| !goes(pod) && !pod.deleting;
    let listens = |pod: &Arc<PodRecord>| stays(pod) && !pod.is_terminal();
    let common = draft.job.topology.common_service.as_ref();
    let headless = render::services(draft.job, |name| observed.services.contains_key(name));
    let headless = headless
        .into_iter()
        .filter(|service| !render::has_cluster_ip(service));
    let headless: BTreeSet<_> = headless.filter_map(|service| service.metadata.name).collect();
    // The services of a removed role are not rendered. They may have cluster IPs.
    let is_unused = |name: &String| match common == Some(name) {
        _ if !headless.contains(name) => !observed.pods.get(name).is_some_and(listens),
        _ if !stop_running => false,
        true => !observed.pods.values().any(stays),
        false => !observed.pods.get(name).is_some_and(stays),
    };
    let services = observed.services.values();
    let unused = services.filter(|service| !service.deleting && is_unused(&service.name));
    let delete = unused.map(|service| Deletion::new(ChildKind::Service, &service.name, &service.uid));
    draft.plan.delete.extend(delete);
    let mut pods = observed.pods.values();
    sidecars_end_at.filter(|_| pods.any(|pod| !pod.deleting && is_kept(pod)))
}

/// Returns true if running pods must be deleted: by the clean-up policy, or because the job exceeded a limit.
fn must_stop_running(policy: CleanPodPolicy, status: &JobStatus) -> bool {
    let limit = status.failure.as_ref().is_some_and(|f| match f.reason.as_str() {
        // A pod can fail for its own deadline with the same reason. The record of the job's deadline names no pod.
        reasons::DEADLINE_EXCEEDED => f.pod.is_none(),
        reason => reason == reasons::BACKOFF_LIMIT_EXCEEDED,
    });
    policy != CleanPodPolicy::None || (limit && status.is(ConditionType::Failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_has_the_reason_only_if_it_adds_to_the_exit_code() {
        let cause = |reason: &str, exit_code| {
            describe(&FailureRecord {
                reason: reason.to_owned(),
                pod: Some("job-worker-1".to_owned()),
                exit_code,
                ..FailureRecord::default()
            })
        };
        assert_eq!(cause("Error", Some(3)), "job-worker-1: exit code 3");
        assert_eq!(
            cause("OOMKilled", Some(137)),
            "job-worker-1: OOMKilled, exit code 137"
        );
        assert_eq!(
            cause("BackoffLimitExceeded", Some(1)),
            "job-worker-1: exit code 1"
        );
        assert_eq!(cause("Evicted", None), "job-worker-1: Evicted");
    }
}
