//! Changes conditions by the rules of the Go operator (`status.go` of v1.8.1), except for two of its defects: here the
//! end or the suspension of a job removes Restarting.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{ConditionStatus, ConditionType, JobCondition, JobStatus};

/// Maximum time by which a condition may be ahead of the clock. Later times are ignored, because users can edit a status
/// and because clocks differ only a little.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_hours(1);

/// Sets a condition. Returns true if the status has changed.
///
/// A condition with the same status and reason is not changed. A changed condition moves to the end of the list, so that
/// the last condition is the latest; only Stalled comes before it. Nothing changes after Failed.
///
/// Clients sort conditions by their times, which are in seconds, to find the latest. Therefore a condition other than
/// Created becomes True at least one second after all other True conditions.
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
        (_, ConditionType::Stalled) => before_state(status, now),
        (ConditionStatus::True, _) => after_others(status, type_, now),
        _ => now,
    };
    let condition = JobCondition {
        type_: type_.as_str().to_owned(),
        status: value,
        reason: reason.to_owned(),
        message,
        last_update_time: Some(Time(if kept.is_some() { now } else { at.max(now) })),
        last_transition_time: kept.or(Some(Time(at))),
    };
    let keeps_stall = match type_ {
        ConditionType::Created | ConditionType::HookPanicked => true,
        ConditionType::Running => value == ConditionStatus::True,
        _ => false,
    };
    if !keeps_stall {
        remove(status, ConditionType::Stalled);
    }
    match type_ {
        ConditionType::Restarting => remove(status, ConditionType::Running),
        ConditionType::Running | ConditionType::Suspended => remove(status, ConditionType::Restarting),
        ConditionType::Succeeded | ConditionType::Failed => {
            remove(status, ConditionType::Restarting);
            turn_off(status, ConditionType::Running, now);
        }
        ConditionType::Created | ConditionType::HookPanicked | ConditionType::Stalled => {}
    }
    remove(status, type_);
    let state = status.conditions.iter().rposition(is_true);
    let place = state.filter(|_| type_ == ConditionType::Stalled);
    status
        .conditions
        .insert(place.unwrap_or(status.conditions.len()), condition);
    true
}

/// Returns a time before that of the latest True condition. Some clients take the newest condition as the state of the job, and
/// fail on an unknown type. The time of the last update is that of the stall.
fn before_state(status: &JobStatus, now: Timestamp) -> Timestamp {
    let state = status.conditions.iter().rev().find(|c| is_true(c));
    let since = state.and_then(|c| c.last_transition_time.as_ref());
    let before = since.and_then(|time| time.0.checked_sub(SignedDuration::from_secs(1)).ok());
    before.map_or(now, |before| before.min(now))
}

fn is_true(condition: &JobCondition) -> bool {
    condition.status == ConditionStatus::True
}

/// Returns `now`, or one second after the latest True condition of another type if that is later.
fn after_others(status: &JobStatus, type_: ConditionType, now: Timestamp) -> Timestamp {
    let others = status.conditions.iter();
    let others = others.filter(|c| c.status == ConditionStatus::True && c.type_ != type_.as_str());
    let times = others.filter_map(|c| c.last_transition_time.as_ref());
    let times = times.filter(|time| time.0.duration_since(now) < MAX_CLOCK_SKEW);
    let next = times.filter_map(|time| time.0.checked_add(SignedDuration::from_secs(1)).ok());
    next.max().unwrap_or(now).max(now)
}

pub(super) fn remove(status: &mut JobStatus, type_: ConditionType) {
    status.conditions.retain(|c| c.type_ != type_.as_str());
}

/// Sets a condition to False, and keeps its position, reason and message.
fn turn_off(status: &mut JobStatus, type_: ConditionType, now: Timestamp) {
    let held = |c: &&mut JobCondition| c.type_ == type_.as_str() && c.status == ConditionStatus::True;
    if let Some(condition) = status.conditions.iter_mut().find(held) {
        let since = condition.last_transition_time.as_ref().map_or(now, |time| time.0);
        let is_ahead = since > now && since.duration_since(now) < MAX_CLOCK_SKEW;
        let now = if is_ahead { since } else { now };
        condition.status = ConditionStatus::False;
        condition.last_update_time = Some(Time(now));
        condition.last_transition_time = Some(Time(now));
    }
}
