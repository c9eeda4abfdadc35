//! Plans jobs on which a hook of their kind panicked.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{ConditionStatus, ConditionType, JobCondition, JobStatus};

use super::invalid::shorten;
use super::reasons::HOOK_PANICKED;
use super::types::{Plan, PlannedEvent, StatusChange};

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
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
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
        status: (next != *status).then_some(StatusChange {
            status: next,
            urgent: true,
        }),
        events: vec![PlannedEvent {
            warning: true,
            reason,
            message,
        }],
        ..Plan::default()
    }
}
