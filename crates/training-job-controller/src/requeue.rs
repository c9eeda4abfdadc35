//! Decides when a job is reconciled again. No other module makes this decision.

use std::time::Duration;

use jiff::Timestamp;
use kube_follow::{CallError, millis};
use tokio::time::Instant;

use training_job::plan::Plan;

use super::answers::Answer;
use super::context::Context;
use super::job_state::JobState;
use super::metrics::ErrorReason;
use super::queue::Key;
use super::steps::StatusWrite;
use super::steps::{Applied, ApplyError};

/// Maximum time until a job with a time limit is reconciled again, because clocks are set and machines sleep.
pub(super) const MAX_SLEEP: Duration = Duration::from_secs(60);

/// The outcome of a reconcile, which determines when the next one is due.
pub(super) enum Next {
    /// The plan is done. Reconcile again at this time, if any; a watch event may come earlier.
    Done(Option<Instant>),
    /// The plan was carried out, and the next plan is due immediately.
    Now,
    /// An action failed. Reconcile again after a backoff, or at this time if it is earlier.
    Failed(Problem, Option<Instant>),
}

/// A failure, for the log and the backoff.
pub(super) struct Problem {
    text: String,
    pub(super) reason: ErrorReason,
    /// The delay before the next call that the server requested, if any.
    retry_after: Option<Duration>,
    /// True if the server is away. The next call waits until it is back, so that the job needs no backoff.
    pub(super) is_away: bool,
}

impl Problem {
    pub(super) fn new(reason: ErrorReason, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            reason,
            retry_after: None,
            is_away: false,
        }
    }
}

impl From<CallError> for Problem {
    fn from(error: CallError) -> Self {
        Self {
            text: error.to_string(),
            reason: Answer::from(&error).error_reason(),
            retry_after: error.retry_after(),
            is_away: matches!(error, CallError::Away),
        }
    }
}

impl From<ApplyError> for Problem {
    fn from(error: ApplyError) -> Self {
        Self {
            text: error.to_string(),
            reason: error.error_reason(),
            retry_after: error.retry_after(),
            is_away: error.is_away(),
        }
    }
}

/// Decides when to reconcile again after all five steps. `next_plan` was computed after apply.
pub(super) fn decide(
    context: &Context,
    applied: &Applied,
    next_plan: &Plan,
    written: Result<StatusWrite, CallError>,
) -> Next {
    let (acted, deferred) = (applied.acted, applied.deferred);
    // A child that was found to be gone causes no further watch event, and the job's time to live may have ended
    // meanwhile.
    let unfinished = next_plan.delete_job || acted && deferred.is_none() && next_plan.changes_children();
    let planned = next_plan
        .requeue
        .as_ref()
        .map(|requeue| instant(context, requeue.at));
    let due = planned.into_iter().chain(deferred).min();
    let failure = applied
        .failures
        .iter()
        .find(|f| !matches!(f.problem, ApplyError::NotTried));
    match (written, failure) {
        // If the job is gone or has changed, a watch event follows, or the next reconcile reads it.
        (Err(error), _) => Next::Failed(error.into(), due),
        (_, Some(failure)) => {
            let problem = Problem {
                text: format!("{}: {}", failure.name, failure.problem),
                reason: failure.problem.error_reason(),
                retry_after: applied
                    .failures
                    .iter()
                    .filter_map(|f| f.problem.retry_after())
                    .max(),
                is_away: failure.problem.is_away(),
            };
            Next::Failed(problem, due)
        }
        (Ok(StatusWrite::Ignored), _) => Next::Failed(
            Problem::new(
                ErrorReason::NotStored,
                "the API server stored a different status than was sent; check that the installed CRD is up to date",
            ),
            due,
        ),
        (Ok(StatusWrite::Stored), _) => Next::Now,
        (Ok(_), _) if unfinished => Next::Now,
        (Ok(StatusWrite::Deferred(at)), _) => Next::Done(Some(due.map_or(at, |due| due.min(at)))),
        (Ok(StatusWrite::NotNeeded | StatusWrite::Refused), _) => Next::Done(due),
    }
}

/// Queues the job again according to `next`.
pub(super) fn schedule(context: &Context, kind: &str, key: &Key, next: Next, state: &mut JobState) {
    match next {
        Next::Done(due) => {
            state.succeeded();
            if let Some(at) = due {
                context.queue.add_at(key.clone(), at);
            }
        }
        Next::Now => {
            state.succeeded();
            context.queue.add(key.clone());
        }
        Next::Failed(problem, _) if problem.is_away => {
            tracing::debug!(
                kind,
                namespace = key.namespace,
                job = key.name,
                "waits for the API server"
            );
            context.queue.add(key.clone());
        }
        Next::Failed(problem, due) => {
            let now = Instant::now();
            state.failures = state.failures.saturating_add(1);
            state.blocked_until = problem.retry_after.map(|wait| now + wait);
            let wait = context.quota_queue.pause(key, state.failures);
            let wait = wait.max(problem.retry_after.unwrap_or_default());
            tracing::warn!(
                kind,
                namespace = key.namespace,
                job = key.name,
                problem = problem.text,
                wait_ms = millis(wait),
                "failed to reconcile"
            );
            let retry = now + wait;
            state.refused.set_retry_at(retry);
            // Time limits are kept despite other failures, unless the server requested a delay.
            context
                .queue
                .add_at(key.clone(), due.map_or(retry, |due| due.min(retry)));
        }
    }
}

/// Returns the instant at which the clock reaches `at`, but at most [`MAX_SLEEP`] from now.
fn instant(context: &Context, at: Timestamp) -> Instant {
    let wait = Duration::try_from(at.duration_since(context.clock.now())).unwrap_or(Duration::ZERO);
    // Plans have a resolution of whole seconds, so a reconcile slightly too early would find nothing due.
    Instant::now() + (wait + Duration::from_millis(5)).min(MAX_SLEEP)
}
