//! How conditions change, by the Go operator's rules (`status.go` of v1.8.1) but for two defects:
//! Restarting does not outlive the end or the suspension of a job.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{ConditionStatus, ConditionType, JobCondition, JobStatus};

/// How far ahead of the clock a time in a status may be and still be taken for one. Clocks differ, and anybody may edit
/// a status.
const MAX_AHEAD: SignedDuration = SignedDuration::from_hours(1);

/// Sets a condition, and returns whether that changed the status.
///
/// A condition with the same status and reason stays as it is. Any other is taken out and put at the
/// end, so that the last condition is the latest. Nothing changes after Failed.
///
/// A condition that becomes True does so at least a second after all others that are True, except Created: clients sort
/// conditions by their times, which are in seconds, to find the latest.
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
    let at = match (value, type_) {
        (ConditionStatus::True, ConditionType::Created) => now,
        (ConditionStatus::True, _) => after_others(status, type_, now),
        _ => now,
    };
    let condition = JobCondition {
        type_: type_.as_str().to_owned(),
        status: value,
        reason: reason.to_owned(),
        message,
        last_update_time: Some(Time(if kept.is_some() { now } else { at })),
        last_transition_time: kept.or(Some(Time(at))),
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

/// The time now, or later if a condition of another type has become True within this second or is ahead of the clock.
fn after_others(status: &JobStatus, type_: ConditionType, now: Timestamp) -> Timestamp {
    let others = status.conditions.iter();
    let others = others.filter(|c| c.status == ConditionStatus::True && c.type_ != type_.as_str());
    let times = others.filter_map(|c| c.last_transition_time.as_ref());
    let times = times.filter(|time| time.0.duration_since(now) < MAX_AHEAD);
    let next = times.filter_map(|time| time.0.checked_add(SignedDuration::from_secs(1)).ok());
    next.max().unwrap_or(now).max(now)
}

/// Takes a condition out.
pub(super) fn remove(status: &mut JobStatus, type_: ConditionType) {
    status.conditions.retain(|c| c.type_ != type_.as_str());
}

/// Makes a condition false where it stands; its reason and message stay.
fn turn_off(status: &mut JobStatus, type_: ConditionType, now: Timestamp) {
    let held = |c: &&mut JobCondition| c.type_ == type_.as_str() && c.status == ConditionStatus::True;
    if let Some(condition) = status.conditions.iter_mut().find(held) {
        let since = condition.last_transition_time.as_ref().map_or(now, |time| time.0);
        let is_ahead = since > now && since.duration_since(now) < MAX_AHEAD;
        let now = if is_ahead { since } else { now };
        condition.status = ConditionStatus::False;
        condition.last_update_time = Some(Time(now));
        condition.last_transition_time = Some(Time(now));
    }
}
