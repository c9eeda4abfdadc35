//! Gangs in a storm.

use training_job_testing::cluster::wait_for_all;

use super::process::{Gangs, Scheduler};
use crate::jobs::{JAX, Kind, MPI, MX, PADDLE, PYTORCH, TF, XGBOOST};
use crate::stage::Stage;
use crate::storm::{Act, Weather, blows, seeds};

const KINDS: &[Kind] = &[MX, TF, PYTORCH, XGBOOST, PADDLE, JAX, MPI];

/// There is room for two of the largest jobs.
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

/// What happens to gangs whichever scheduler they have.
macro_rules! acts {
    ($group:expr) => {
        &[
            Act::Make,
            Act::Make,
            Act::Make,
            Act::DeletePod,
            Act::EvictPod,
            Act::KillPod,
            Act::KillPod,
            Act::EndPod,
            Act::Suspend,
            Act::Resume,
            Act::Resume,
            Act::Scale,
            Act::MakeAgain,
            Act::KillOperator,
            Act::HoldImages,
            Act::LoseNode,
            Act::Delete($group),
        ]
    };
}

#[tokio::test]
async fn every_gang_succeeds_in_the_end_under_volcano() {
    let acts = acts!(["scheduling.volcano.sh", "v1beta1", "PodGroup"]);
    every_gang_succeeds_in_the_end(Scheduler::Volcano, acts).await;
}

#[tokio::test]
async fn every_gang_succeeds_in_the_end_under_coscheduling() {
    let acts = acts!(["scheduling.x-k8s.io", "v1alpha1", "PodGroup"]);
    every_gang_succeeds_in_the_end(Scheduler::Coscheduling, acts).await;
}
