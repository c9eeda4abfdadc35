//! When a job is reconciled again: the one place that decides.

use std::time::Duration;

use jiff::Timestamp;
use kube_follow::{CallError, backoff, millis};
use tokio::time::Instant;

use crate::plan::Plan;

use super::context::Context;
use super::job_state::JobState;
use super::queue::Key;
use super::steps::Written;
use super::steps::{Applied, ApplyError};

/// The longest time until a job is reconciled again for a time limit: clocks are set, and machines sleep.
pub(super) const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// How a reconcile ended, and so when the next one is due.
pub(super) enum Next {
    /// All is as planned. Reconcile again then, if at all; an event of a watch may come earlier.
    Done(Option<Instant>),
    /// The plan was carried out, and another one is due at once.
    Now,
    /// Something failed. Reconcile again after a backoff, or then if that is earlier.
    Failed(Problem, Option<Instant>),
}

/// What failed.
pub(super) struct Problem {
    text: String,
    /// How long the server asks for no further calls, if it does.
    retry_after: Option<Duration>,
}

impl From<&str> for Problem {
    fn from(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            retry_after: None,
        }
    }
}

impl From<CallError> for Problem {
    fn from(error: CallError) -> Self {
        Self {
            text: error.message(),
            retry_after: error.retry_after(),
        }
    }
}

/// When to reconcile again after all five steps.
///
/// `deferred` is when creates that were left out of the plan may be tried; `next_plan` was made after apply, and
/// `acted` says that there was something to apply.
pub(super) fn decide(
    context: &Context,
    applied: &Applied,
    next_plan: &Plan,
    written: Result<Written, CallError>,
    deferred: Option<Instant>,
    acted: bool,
) -> Next {
    // A child that was found to be gone sends no further watch event, and the job's time to live may have ended
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
        // If the job is gone or has changed, the watch says so, or the next reconcile reads it.
        (Err(error), _) => Next::Failed(error.into(), due),
        (_, Some(failure)) => {
            let problem = Problem {
                text: format!("{}: {}", failure.name, failure.problem),
                retry_after: applied
                    .failures
                    .iter()
                    .filter_map(|f| f.problem.retry_after())
                    .max(),
            };
            Next::Failed(problem, due)
        }
        (Ok(Written::Unchanged), _) => Next::Failed(
            "the server keeps another status than it is sent; is the CRD an older one?".into(),
            due,
        ),
        (Ok(Written::Now), _) => Next::Now,
        (Ok(_), _) if unfinished => Next::Now,
        (Ok(Written::Later(at)), _) => Next::Done(Some(due.map_or(at, |due| due.min(at)))),
        (Ok(Written::Nothing | Written::Refused), _) => Next::Done(due),
    }
}

/// Puts the job back into the queue as `next` says.
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
        Next::Failed(problem, due) => {
            let now = Instant::now();
            state.failures = state.failures.saturating_add(1);
            state.blocked_until = problem.retry_after.map(|wait| now + wait);
            let wait = backoff(state.failures, key).max(problem.retry_after.unwrap_or_default());
            tracing::warn!(
                kind,
                namespace = key.namespace,
                job = key.name,
                problem = problem.text,
                wait_ms = millis(wait),
                "failed to reconcile"
            );
            let retry = now + wait;
            state.refused.until(retry);
            // Time limits are kept whatever else fails, unless the server asks for no further calls.
            context
                .queue
                .add_at(key.clone(), due.map_or(retry, |due| due.min(retry)));
        }
    }
}

/// The instant at which the clock will show `at`, or a while from now if that is earlier.
fn instant(context: &Context, at: Timestamp) -> Instant {
    let wait = Duration::try_from(at.duration_since(context.clock.now())).unwrap_or(Duration::ZERO);
    // Plans see whole seconds: a moment too early would find nothing due.
    Instant::now() + (wait + Duration::from_millis(5)).min(LONGEST_SLEEP)
}
