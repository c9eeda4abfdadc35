//! Plans jobs that cannot be run: invalid ones, those with another layout than their pods, those that cannot be decoded,
//! and those on which a hook of their kind panicked.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{ConditionStatus, ConditionType, FailureRecord, JobCondition, JobStatus, Layout};
use crate::validate::{ValidJob, annotations, common_service_name};

use super::facts::whole_second;
use super::observed::Observed;
use super::reasons::{FAILED_VALIDATION, HOOK_PANICKED};
use super::types::{Plan, PlannedEvent, StatusChange};
use super::{conditions, end};

/// Maximum size of the field errors in a message, in bytes. The message of an event must be at most 1,024 bytes.
const MAX_PROBLEM_BYTES: usize = 900;

/// Returns the error of a job whose pods were created for the other layout. They find each other by names that the new
/// layout does not have. The API server rejects an edit of the field, but the annotation that stands for it can be
/// edited.
pub(super) fn layout_change(job: &ValidJob<'_>, observed: &Observed) -> Option<String> {
    let status = job.job.status();
    if job.policy.suspend || status.is_some_and(|status| status.is_finished()) {
        return None;
    }
    if observed
        .pods
        .values()
        .all(|pod| pod.deleting || pod.is_terminal())
    {
        return None;
    }
    let topology = &job.topology;
    let common = common_service_name(topology.job);
    let has_common = observed.services.contains_key(&common);
    let has_own = || observed.services.keys().any(|name| topology.has_host_named(name));
    let made_for = match topology.common_service {
        None if has_common && !topology.has_host_named(&common) => Layout::Compact,
        Some(_) if !has_common && has_own() => Layout::Plain,
        _ => return None,
    };
    Some(format!(
        "{}: must not change while pods run, because they were created for the layout {word} and find each other by its \
         names; set {word}, or suspend the job first",
        annotations::path_of(&*job.job, "layout"),
        word = made_for.as_str(),
    ))
}

/// Returns the plan for a job whose spec is invalid or cannot be decoded.
///
/// A job that has not started gets a Failed condition and an event, and nothing more until it changes. A job that runs
/// continues, because a mistake in an edit should not end the training. It gets only the event, which the controller sends
/// once for each edit.
pub fn invalid(
    kind: &str,
    name: &str,
    status: &JobStatus,
    ttl: Option<i64>,
    problem: &str,
    observed: &Observed,
    now: Timestamp,
) -> Plan {
    let now = whole_second(now);
    let mut plan = Plan {
        refused: true,
        ..Plan::default()
    };
    let reason = format!("{kind}{FAILED_VALIDATION}");
    let message = format!("{kind} {name} failed validation: {}", shorten(problem));
    let earlier = status
        .condition(ConditionType::Failed)
        .filter(|c| c.reason == reason && status.start_time.is_none());
    if status.is_finished() && earlier.is_none_or(|c| c.message == message) {
        let mut next = status.clone();
        end::fill_completion_time(&mut next, now);
        end::bound_active(&mut next, observed);
        plan = plan.and(end::expire(&next, ttl, now));
        plan.status = (next != *status).then_some(StatusChange::urgent(next));
        return plan;
    }
    if status.start_time.is_none() {
        let mut next = status.clone();
        // The stored condition may report an error that an edit has replaced by another.
        conditions::remove(&mut next, ConditionType::Failed);
        conditions::set(
            &mut next,
            ConditionType::Failed,
            ConditionStatus::True,
            &reason,
            message.clone(),
            now,
        );
        next.completion_time = Some(Time(now));
        end::bound_active(&mut next, observed);
        let failure = FailureRecord {
            reason: reason.clone(),
            message: message.clone(),
            ..Default::default()
        };
        next.failure = Some(failure.summarized());
        plan.status = Some(StatusChange::urgent(next));
    }
    plan.events.push(PlannedEvent {
        warning: true,
        reason,
        message,
    });
    plan
}

/// Returns the plan for a job on which a hook panicked. Nothing happens to its children, because their state cannot be
/// decided. The job gets the condition HookPanicked and an event, both with the names of the hook and the kind.
///
/// `hook` is `None` if the panic was outside of the hooks. The condition goes with the next plan that is made.
pub fn panicked(
    kind: &str,
    name: &str,
    status: &JobStatus,
    hook: Option<&str>,
    panic: &str,
    now: Timestamp,
) -> Plan {
    let now = whole_second(now);
    let reason = format!("{kind}{HOOK_PANICKED}");
    let place = match hook {
        Some(hook) => format!("the hook {hook} of {kind}"),
        None => format!("the operator of {kind}"),
    };
    let message = format!(
        "{kind} {name} does not change, because {place} panicked: {}; report it to the authors of the kind",
        shorten(panic)
    );
    let mut next = status.clone();
    let type_ = ConditionType::HookPanicked;
    if status.condition(type_).is_none_or(|old| old.message != message) {
        next.conditions.retain(|c| c.type_ != type_.as_str());
        // Clients take the last condition for the state of the job.
        next.conditions.insert(
            0,
            JobCondition {
                type_: type_.as_str().to_owned(),
                status: ConditionStatus::True,
                reason: reason.clone(),
                message: message.clone(),
                last_update_time: Some(Time(now)),
                last_transition_time: Some(Time(now)),
            },
        );
    }
    Plan {
        status: (next != *status).then_some(StatusChange::urgent(next)),
        events: vec![PlannedEvent {
            warning: true,
            reason,
            message,
        }],
        ..Plan::default()
    }
}

/// Returns the start of a problem that fits into an event.
fn shorten(problem: &str) -> String {
    let mut end = problem.len().min(MAX_PROBLEM_BYTES);
    while !problem.is_char_boundary(end) {
        end -= 1;
    }
    let more = if end < problem.len() { " …" } else { "" };
    format!("{}{more}", &problem[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_problem_is_cut_at_a_character_boundary() {
        let whole = "é".repeat(MAX_PROBLEM_BYTES / 2);
        assert_eq!(shorten(&whole), whole);
        assert_eq!(
            shorten(&format!("a{whole}")),
            format!("a{} …", "é".repeat(MAX_PROBLEM_BYTES / 2 - 1))
        );
    }
}
