//! Jobs on a quota in a storm.

use crate::jobs::{Kind, MX, PADDLE, PYTORCH, TF, XGBOOST};
use crate::stage::{Operators, Stage};
use crate::storm::{Act, Weather, blows, seeds};

use super::process::Queues;
use super::queue::QUEUE;

const KINDS: &[Kind] = &[MX, TF, PYTORCH, XGBOOST, PADDLE];

/// Kueue suspends and resumes jobs here, and nobody else. What makes it give room away beside pods that are there is left out:
/// a job or its Workload that is deleted, a Workload that is made inactive.
const ACTS: &[Act] = &[Act::KillOperator, Act::HoldImages, Act::StopQueue, Act::StopQueue];

/// There are never more pods than the quota is for, whatever their jobs' priorities. Evictions cost no restart, and other
/// things happen often enough to need some.
#[tokio::test]
async fn every_job_in_a_queue_succeeds_in_the_end() {
    let queues = Queues::shared().await;
    for seed in seeds() {
        let mut stage = Stage::with_quota(queues, "storm", (MX, Operators::AreKilled), 8).await;
        let weather = Weather {
            kinds: KINDS,
            acts: ACTS,
            dress: |stage, random, job| {
                job["metadata"]["labels"][QUEUE] = "queue".into();
                if random.chance(300) {
                    *job = stage.hurried(job.take());
                }
            },
            most_workers: 6,
        };
        blows(&mut stage, seed, &weather).await;
        stage.history.expect_at_most(8).await;
        stage.end();
    }
}
