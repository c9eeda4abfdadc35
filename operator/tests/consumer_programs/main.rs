//! Programs that read jobs, run on recordings of each stage of each kind's life on a real API server. `make
//! test-consumers` builds the programs and runs this test, which takes minutes. `cluster` checks models of other
//! programs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod programs;
mod readers;

use training_job_testbed::cluster::ControlPlane;
use training_operator_testing::recordings::life::play;
use training_operator_testing::recordings::problems::Problems;

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
