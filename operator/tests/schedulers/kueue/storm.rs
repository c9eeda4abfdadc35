//! Jobs with a quota in a storm.

use training_job_testbed::cluster::wait_for_all;

use crate::gangs::process::Scheduler;
use crate::jobs::{JAX, Kind, PADDLE, PYTORCH, TF, XGBOOST};
use crate::stage::{Operators, Stage};
use crate::storm::{Act, Weather, blows, seeds};

use super::process::{Queues, Setup};
use super::queue::QUEUE;

const KINDS: &[Kind] = &[TF, PYTORCH, XGBOOST, PADDLE, JAX];

/// Only Kueue suspends and resumes jobs here. Acts that make Kueue release quota while pods exist are excluded:
/// deletion of a job or its Workload, and deactivation of a Workload.
const ACTS: [Act; 4] = [Act::KillOperator, Act::HoldImages, Act::StopQueue, Act::StopQueue];

/// The number of pods never exceeds the quota, whatever the jobs' priorities. Evictions cost no restart, but other
/// acts are frequent enough to need some.
async fn every_job_in_a_queue_succeeds_in_the_end(queues: &Queues, acts: &'static [Act]) {
    for seed in seeds() {
        let mut stage = Stage::with_quota(queues, "storm", (TF, Operators::AreKilled), 8).await;
        let weather = Weather {
            kinds: KINDS,
            acts,
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
        if let Some(scheduler) = queues.gangs {
            wait_for_all(stage.groups(scheduler), "", <[_]>::is_empty).await;
        }
        stage.end();
    }
}

#[tokio::test]
async fn every_job_succeeds_in_the_end() {
    every_job_in_a_queue_succeeds_in_the_end(Queues::shared().await, &ACTS).await;
}

/// Jobs wait in a queue, and then as a gang.
async fn every_gang_succeeds_in_the_end(scheduler: Scheduler, acts: &'static [Act]) {
    let setup = Setup {
        gangs: Some(scheduler),
        ..Setup::default()
    };
    let queues = Queues::start(setup).await;
    every_job_in_a_queue_succeeds_in_the_end(&queues, acts).await;
}

const fn with_groups(scheduler: Scheduler) -> [Act; 5] {
    let [a, b, c, d] = ACTS;
    let [group, version] = scheduler.pod_group();
    [a, b, c, d, Act::Delete([group, version, "PodGroup"])]
}

#[tokio::test]
async fn every_gang_succeeds_in_the_end_under_volcano() {
    const ACTS: [Act; 5] = with_groups(Scheduler::Volcano);
    every_gang_succeeds_in_the_end(Scheduler::Volcano, &ACTS).await;
}

#[tokio::test]
async fn every_gang_succeeds_in_the_end_under_coscheduling() {
    const ACTS: [Act; 5] = with_groups(Scheduler::Coscheduling);
    every_gang_succeeds_in_the_end(Scheduler::Coscheduling, &ACTS).await;
}
