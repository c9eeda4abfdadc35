//! The input of a plan. No step changes it.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use crate::api::{ConditionType, JobStatus};
use crate::validate::ValidJob;

use super::conditions;
use super::observed::Observed;
use super::reasons::FAILED_VALIDATION;

/// The input of a plan: the job, its children, its stored status and the time.
pub(super) struct Facts<'a> {
    pub(super) job: &'a ValidJob<'a>,
    pub(super) observed: &'a Observed,
    pub(super) stored: &'a JobStatus,
    /// The current time in whole seconds, as in a stored status. With fractions, each comparison with the stored status
    /// would find a difference.
    pub(super) now: Timestamp,
    /// The current time with fractions of a second.
    pub(super) exact_now: Timestamp,
}

impl<'a> Facts<'a> {
    pub(super) fn new(
        job: &'a ValidJob<'a>,
        observed: &'a Observed,
        stored: &'a JobStatus,
        now: Timestamp,
    ) -> Self {
        Self {
            job,
            observed,
            stored,
            now: whole_second(now),
            exact_now: now,
        }
    }

    /// Returns the deadline of a job that started at `start`, if it has one.
    pub(super) fn deadline(&self, start: Timestamp) -> Option<Timestamp> {
        let seconds = self.job.policy.active_deadline_seconds?;
        // A deadline that is not representable never comes.
        start.checked_add(SignedDuration::from_secs(seconds)).ok()
    }

    /// Returns the stored status without the parts that hold no longer.
    pub(super) fn corrected_status(&self) -> JobStatus {
        let (job, mut status) = (&self.job.job, self.stored.clone());
        conditions::remove(&mut status, ConditionType::HookPanicked);
        correct_future_times(&mut status, job.meta(), self.now);
        recover(&job.kind(), &mut status);
        status
    }
}

/// Returns the time without its fraction of a second, as a stored status has it.
pub(super) fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// Sets the start and the end of a job to the current time if they are more than a day ahead, because clocks do not differ
/// by more. A job with a start in the far future would never reach its deadline, and one with such an end would never be
/// deleted. Recorded restarts in the future are removed. If the clock is behind the creation of the job, the creation
/// counts as the current time.
///
/// A start before the creation is kept, because a backup restores jobs with their original times.
fn correct_future_times(status: &mut JobStatus, meta: &ObjectMeta, now: Timestamp) {
    const DAY: SignedDuration = SignedDuration::from_hours(24);
    let created = meta.creation_timestamp.as_ref().map(|time| time.0);
    let now = created.map_or(now, |created| created.max(now));
    for time in [&mut status.start_time, &mut status.completion_time] {
        if let Some(Time(at)) = time.as_mut().filter(|at| at.0.duration_since(now) > DAY) {
            *at = now;
        }
    }
    let is_past = |time: &Time| time.0.duration_since(now) <= DAY;
    status.recovery.restarted.retain(is_past);
    let uncounted = status.recovery.uncounted.values_mut();
    uncounted.for_each(|times| times.retain(is_past));
}

/// Removes the end of a job that failed only because its spec was invalid, if the spec is valid now.
fn recover(kind: &str, status: &mut JobStatus) {
    let reason = format!("{kind}{FAILED_VALIDATION}");
    let failed = status.condition(ConditionType::Failed);
    if status.start_time.is_none() && failed.is_some_and(|c| c.reason == reason) {
        conditions::remove(status, ConditionType::Failed);
        status.completion_time = None;
        status.failure = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_more_than_a_day_ahead_become_the_present() {
        let now = Timestamp::UNIX_EPOCH;
        let ahead = |hours| Some(Time(now + SignedDuration::from_hours(hours)));
        let mut status = JobStatus {
            start_time: ahead(48),
            completion_time: ahead(24),
            ..JobStatus::default()
        };
        correct_future_times(&mut status, &ObjectMeta::default(), now);
        assert_eq!((status.start_time, status.completion_time), (ahead(0), ahead(24)));
    }
}
