//! Very many jobs that wait for the quota of a few.

use tokio::time::Instant;
use training_operator_testing::usage::Usage;

use super::process::Queues;
use crate::crowd;
use crate::jobs::PYTORCH;
use crate::stage::{Operators, Stage};

/// The quota in pods. It suffices for ten jobs.
const QUOTA: usize = 30;

/// The jobs are created at once, and each ends as soon as it runs. Each must run.
#[tokio::test]
async fn a_crowd_runs_in_turn() {
    let (queues, actors) = (Queues::shared().await, (PYTORCH, Operators::Stay));
    let stage = &Stage::with_quota(queues, "crowd", actors, QUOTA).await;
    let jobs = crowd::size();
    let begun = Instant::now();
    let order = crowd::runs_in_turn(stage, jobs, |name| stage.job(name)).await;
    let seconds = begun.elapsed().as_secs();
    let late = crowd::most_turns_late(&order);
    let Usage { cpu, peak_rss, .. } = Usage::of(stage.operator().0.pid().as_raw_nonzero().get());
    eprintln!(
        "Kueue: {jobs} jobs in {seconds} s; at most {late} turns late; {cpu:.1} s of CPU, {peak_rss:.0} MiB"
    );
    stage.history.expect_at_most(QUOTA).await;
    stage.end();
}
