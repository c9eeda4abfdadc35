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

/// What happens to gangs, whose PodGroups are of this group and version.
const fn acts(group: &'static str, version: &'static str) -> [Act; 9] {
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
    const ACTS: [Act; 9] = acts("scheduling.volcano.sh", "v1beta1");
    every_gang_succeeds_in_the_end(Scheduler::Volcano, &ACTS).await;
}

#[tokio::test]
async fn every_gang_succeeds_in_the_end_under_coscheduling() {
    const ACTS: [Act; 9] = acts("scheduling.x-k8s.io", "v1alpha1");
    every_gang_succeeds_in_the_end(Scheduler::Coscheduling, &ACTS).await;
}
