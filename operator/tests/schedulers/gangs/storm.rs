//! Gangs in a storm.

use training_job_testbed::cluster::wait_for_all;

use super::process::{Gangs, Scheduler};
use crate::jobs::{JAX, Kind, MPI, MX, PADDLE, PYTORCH, TF, XGBOOST};
use crate::stage::Stage;
use crate::storm::{Act, Weather, blows, seeds};

const KINDS: &[Kind] = &[MX, TF, PYTORCH, XGBOOST, PADDLE, JAX, MPI];

/// The capacity suffices for two of the largest jobs.
async fn every_gang_succeeds_in_the_end(scheduler: Scheduler, acts: &'static [Act]) {
    let gangs = Gangs::shared(scheduler).await;
    for seed in seeds() {
        let _alone = gangs.alone().await;
        let mut stage = Stage::in_storm(gangs, scheduler, KINDS, (4, 4)).await;
        let weather = Weather {
            kinds: KINDS,
            acts,
            dress: |_, _, _| {},
            most_workers: 6,
        };
        blows(&mut stage, seed, &weather).await;
        wait_for_all(stage.groups(scheduler), "", <[_]>::is_empty).await;
        stage.end();
    }
}

/// Returns the acts for gangs.
const fn acts(scheduler: Scheduler) -> [Act; 9] {
    let [group, version] = scheduler.pod_group();
    [
        Act::EndPod,
        Act::Suspend,
        Act::Resume,
        Act::Resume,
        Act::Scale,
        Act::MakeAgain,
        Act::HoldImages,
        Act::LoseNode,
        Act::Delete([group, version, "PodGroup"]),
    ]
}

#[tokio::test]
async fn every_gang_succeeds_in_the_end_under_volcano() {
    const ACTS: [Act; 9] = acts(Scheduler::Volcano);
    every_gang_succeeds_in_the_end(Scheduler::Volcano, &ACTS).await;
}

#[tokio::test]
async fn every_gang_succeeds_in_the_end_under_coscheduling() {
    const ACTS: [Act; 9] = acts(Scheduler::Coscheduling);
    every_gang_succeeds_in_the_end(Scheduler::Coscheduling, &ACTS).await;
}
