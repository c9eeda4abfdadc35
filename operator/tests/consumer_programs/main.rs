//! Programs that read jobs, run on recordings of each stage of each kind's life on a real API server. `make
//! test-consumers` builds the programs and runs this test, which takes minutes. `consumers` checks models of other
//! programs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

#[path = "../consumers/kinds.rs"]
mod kinds;
#[path = "../consumers/life.rs"]
#[allow(dead_code, reason = "the models look at more")]
mod life;
#[path = "../consumers/problems.rs"]
mod problems;
mod programs;
mod readers;

use training_job_testing::cluster::ControlPlane;

use life::play;
use problems::Problems;

#[tokio::test]
async fn programs_that_read_jobs_conclude_the_stage_of_each_kind() {
    let recordings = play(ControlPlane::shared().await).await;
    let mut problems = Problems::default();
    readers::argo_cd(&mut problems, &recordings);
    readers::argo_workflows(&mut problems, &recordings);
    readers::flyte(&mut problems, &recordings);
    readers::katib(&mut problems, &recordings);
    readers::kube_state_metrics(&mut problems, &recordings);
    readers::kueue(&mut problems, &recordings);
    problems.expect_none();
}
