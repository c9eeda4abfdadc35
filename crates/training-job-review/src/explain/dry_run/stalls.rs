//! The stall of a job in words.

use std::time::Duration;

use training_job::ValidJob;
use training_job::api::StallAction;
use training_job_program::listed;

use crate::duration::short_time;

/// Describes when the job is stalled, and what happens then.
pub(super) fn describe(job: &ValidJob<'_>) -> Option<String> {
    let progress = job.policy.progress.as_ref()?;
    let limit = progress.stalled_after?;
    let time = |time: Duration| short_time(time.as_secs().try_into().unwrap_or(i64::MAX));
    let printing: Vec<String> = job
        .topology
        .all()
        .filter(|replica| job.watches(replica))
        .map(|replica| replica.pod_name())
        .collect();
    let who = match &printing[..] {
        _ if progress.watches_all => "no replica prints".to_owned(),
        [] => "the first replica of the last role that runs prints".to_owned(),
        names => format!("{} prints", listed(names)),
    };
    let what = match (progress.counts_steps(), progress.watches_all) {
        (true, true) => "a new step",
        (true, false) => "no new step",
        (false, true) => "anything",
        (false, false) => "nothing",
    };
    let start = progress.stalled_at_start_after.filter(|start| *start != limit);
    let start = start.map(|start| format!(", or {} after its start", time(start)));
    let then = match progress.on_stall {
        StallAction::Restart => {
            let limits = [job.policy.backoff_limit, job.policy.failure.max_restarts];
            let most = limits.into_iter().flatten().min();
            let most = most.map(|most| match most {
                1 => ", at most once".to_owned(),
                most => format!(", at most {most} times"),
            });
            format!("the job restarts{}", most.unwrap_or_default())
        }
        StallAction::Fail => "the job fails".to_owned(),
        _ => "the job gets the condition Stalled and an event, and goes on".to_owned(),
    };
    Some(format!(
        "when {who} {what} for {}{}; then {then}.",
        time(limit),
        start.unwrap_or_default()
    ))
}
