//! Plans a finished job: final counts, clean-up, and the deletion of the job at the end of its time to live.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::observed::{Observed, Phase, PodRecord};
use crate::api::{CleanPodPolicy, ConditionType, JobStatus};
use crate::render;

use super::facts::Facts;
use super::next_status::NextStatus;
use super::pod_end::{PodEnd, end_of, ends_by_itself};
use super::types::Plan;
use super::{objects, relabel};

/// Plans a finished job. Nothing is created, and the result never changes.
pub(super) fn finished<'a>(facts: &'a Facts<'a>, status: JobStatus) -> (NextStatus<'a>, Plan) {
    let mut next = NextStatus::new(facts, status);
    fill_completion_time(&mut next.status, facts.now);
    next.settle_counts();
    let start = next.status.start_time.as_ref();
    let deadline = start.and_then(|start| facts.deadline(start.0));
    let sidecars_end_at = sidecars_end_at(facts, &next.status, deadline);
    let expiry = expire(&next.status, facts.job.policy.ttl_seconds, facts.now);
    let (clean_up, keeps_sidecars) = clean_up(facts, next.must_stop_running(), sidecars_end_at.is_some());
    let wait = match sidecars_end_at.filter(|_| keeps_sidecars) {
        Some(until) => Plan::wait(until, "sidecarGracePeriodSeconds"),
        None => expiry,
    };
    let repair = relabel::repair(facts, &clean_up.delete);
    let actions = clean_up
        .and(repair)
        .and(objects::end(facts, &next.status))
        .and(wait);
    (next, actions)
}

/// Plans the deletion of the job at the end of its time to live (`ttlSecondsAfterFinished`).
pub(super) fn expire(status: &JobStatus, ttl: Option<i64>, now: Timestamp) -> Plan {
    // A negative value is invalid, and the author must be able to read the error.
    let (Some(ttl @ 0..), Some(completed)) = (ttl, &status.completion_time) else {
        return Plan::default();
    };
    match completed.0.checked_add(SignedDuration::from_secs(ttl)) {
        Ok(at) if at <= now => Plan {
            delete_job: true,
            ..Plan::default()
        },
        // A time that is not representable never comes.
        due => Plan::wait(due.ok(), "ttlSecondsAfterFinished"),
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

/// Returns the time until which containers beside the framework's may continue in replicas that have ended, if that is
/// in the future: the grace period after the end of the job, or the job's deadline if that is earlier.
fn sidecars_end_at(facts: &Facts<'_>, status: &JobStatus, deadline: Option<Timestamp>) -> Option<Timestamp> {
    let policy = &facts.job.policy;
    let ended = status.completion_time.as_ref()?.0;
    let grace = SignedDuration::from_secs(policy.sidecar_grace_seconds);
    let until = ended.checked_add(grace).ok()?;
    let until = deadline.map_or(until, |deadline| until.min(deadline));
    (facts.now < until && policy.clean_pods != CleanPodPolicy::All).then_some(until)
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

/// Plans the clean-up. Returns true as well if a pod is kept because of its sidecars.
fn clean_up(facts: &Facts<'_>, stop_running: bool, sidecars_may_run: bool) -> (Plan, bool) {
    let (job, observed) = (facts.job, facts.observed);
    let policy = &job.policy.clean_pods;
    let roles = &job.topology.roles;
    let runs = |pod: &PodRecord| !pod.is_terminal() && !ends_by_itself(pod);
    // The state of the job is decided, but containers beside the framework's may have work to finish.
    let only_sidecars_run = |pod: &PodRecord| {
        let role = roles.iter().find(|role| role.may_have(&pod.name));
        let end = role.and_then(|role| end_of(pod, role));
        runs(pod) && end.is_some_and(|end| end != PodEnd::TakenAway)
    };
    let is_kept = |pod: &PodRecord| sidecars_may_run && only_sidecars_run(pod);
    let runs_on = |pod: &PodRecord| runs(pod) && !is_kept(pod);
    let goes = |pod: &PodRecord| *policy == CleanPodPolicy::All || (stop_running && runs_on(pod));
    // A finished pod that stays keeps its headless service. A cluster IP is scarce, and is given back under any policy when
    // its pod no longer listens.
    let stays = |pod: &Arc<PodRecord>| !goes(pod) && !pod.deleting;
    let listens = |pod: &Arc<PodRecord>| stays(pod) && !pod.is_terminal();
    let common = job.topology.common_service.as_ref();
    let headless = render::headless(job);
    // The services of a removed role may have cluster IPs.
    let is_unused = |name: &String| match common == Some(name) {
        _ if !headless.contains(name) => !observed.pods.get(name).is_some_and(listens),
        _ if !stop_running => false,
        true => !observed.pods.values().any(stays),
        false => !observed.pods.get(name).is_some_and(stays),
    };
    let pods = observed.pods.values().filter(|pod| !pod.deleting);
    let services = observed.services.values();
    let services = services.filter(|service| !service.deleting && is_unused(&service.name));
    let services = services.map(|service| service.planned_deletion());
    let gone = pods.clone().filter(|pod| goes(pod));
    let gone = gone.map(|pod| pod.planned_deletion());
    let plan = Plan {
        delete: gone.chain(services).collect(),
        ..Plan::default()
    };
    (plan, pods.into_iter().any(|pod| is_kept(pod)))
}
