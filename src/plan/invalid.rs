//! Plans jobs that are invalid or cannot be decoded.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{ConditionStatus, ConditionType, FailureRecord, JobStatus};

use super::observed::Observed;
use super::reasons::FAILED_VALIDATION;
use super::types::{Plan, PlannedEvent, StatusChange};
use super::{conditions, end};

/// Maximum size of the field errors in a message, in bytes. The message of an event must be at most 1,024 bytes.
const MAX_PROBLEM_BYTES: usize = 900;

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
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
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
        plan.status = (next != *status).then_some(StatusChange {
            status: next,
            urgent: true,
        });
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
        plan.status = Some(StatusChange {
            status: next,
            urgent: true,
        });
    }
    plan.events.push(PlannedEvent {
        warning: true,
        reason,
        message,
    });
    plan
}

/// Returns the start of a problem that fits into an event.
pub(super) fn shorten(problem: &str) -> String {
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
