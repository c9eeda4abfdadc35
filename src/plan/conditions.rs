//! How conditions change, by the Go operator's rules (`status.go` of v1.8.1) but for two defects:
//! Restarting does not outlive the end or the suspension of a job.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{ConditionStatus, ConditionType, JobCondition, JobStatus};

/// Sets a condition, and returns whether that changed the status.
///
/// A condition with the same status and reason stays as it is. Any other is taken out and put at the
/// end, so that the last condition is the latest. Nothing changes after Failed.
pub(super) fn set(
    status: &mut JobStatus,
    type_: ConditionType,
    value: ConditionStatus,
    reason: &str,
    message: String,
    now: Timestamp,
) -> bool {
    let old = status.condition(type_);
    if status.is(ConditionType::Failed) || old.is_some_and(|c| c.status == value && c.reason == reason) {
        return false;
    }
    let kept = old
        .filter(|c| c.status == value)
        .and_then(|c| c.last_transition_time.clone());
    let condition = JobCondition {
        type_: type_.as_str().to_owned(),
        status: value,
        reason: reason.to_owned(),
        message,
        last_update_time: Some(Time(now)),
        last_transition_time: kept.or(Some(Time(now))),
    };
    match type_ {
        ConditionType::Restarting => remove(status, ConditionType::Running),
        ConditionType::Running | ConditionType::Suspended => remove(status, ConditionType::Restarting),
        ConditionType::Succeeded | ConditionType::Failed => {
            remove(status, ConditionType::Restarting);
            turn_off(status, ConditionType::Running, now);
        }
        ConditionType::Created => {}
    }
    remove(status, type_);
    status.conditions.push(condition);
    true
}

/// Takes a condition out.
pub(super) fn remove(status: &mut JobStatus, type_: ConditionType) {
    status.conditions.retain(|c| c.type_ != type_.as_str());
}

/// Makes a condition false where it stands; its reason and message stay.
fn turn_off(status: &mut JobStatus, type_: ConditionType, now: Timestamp) {
    let held = |c: &&mut JobCondition| c.type_ == type_.as_str() && c.status == ConditionStatus::True;
    if let Some(condition) = status.conditions.iter_mut().find(held) {
        condition.status = ConditionStatus::False;
        condition.last_update_time = Some(Time(now));
        condition.last_transition_time = Some(Time(now));
    }
}
