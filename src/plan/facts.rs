//! What a plan is made from. No step changes it.

use jiff::{SignedDuration, Timestamp};

use crate::api::JobStatus;
use crate::validate::ValidJob;

use super::observed::Observed;

/// What a plan is made from.
#[derive(Clone, Copy)]
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
            now: Timestamp::from_second(now.as_second()).unwrap_or(now),
            exact_now: now,
        }
    }

    /// Returns the deadline of a job that started at `start`, if it has one.
    pub(super) fn deadline(&self, start: Timestamp) -> Option<Timestamp> {
        let seconds = self.job.policy.active_deadline_seconds?;
        // A deadline that is not representable never comes.
        start.checked_add(SignedDuration::from_secs(seconds)).ok()
    }
}
