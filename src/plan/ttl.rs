//! Decides when a finished job is deleted because its time to live (`ttlSecondsAfterFinished`) is over. The controller
//! carries it out in `controller/ttl.rs`.

use jiff::{SignedDuration, Timestamp};

use crate::api::JobStatus;

use super::types::Plan;

/// Plans the deletion of the job at the end of its time to live.
pub(super) fn apply_ttl(plan: &mut Plan, status: &JobStatus, ttl: Option<i64>, now: Timestamp) {
    // A negative value is invalid, and the author must be able to read the error.
    let (Some(ttl @ 0..), Some(completed)) = (ttl, &status.completion_time) else {
        return;
    };
    match completed.0.checked_add(SignedDuration::from_secs(ttl)) {
        Ok(at) if at <= now => plan.delete_job = true,
        Ok(at) => plan.requeue_at(at, "ttlSecondsAfterFinished"),
        // The time is not representable, so it never comes.
        Err(_) => {}
    }
}
