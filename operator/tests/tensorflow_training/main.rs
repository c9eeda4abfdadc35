//! TensorFlow on a real API server. `cluster_training` covers the other frameworks. `make test-tensorflow` runs this
//! test, which needs a download of 400 MB.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

#[path = "../cluster_training/jobs.rs"]
#[allow(dead_code, reason = "other trainings are looked at more closely")]
mod jobs;
#[path = "../install/manifests.rs"]
#[allow(dead_code, reason = "what the permissions are is another test's")]
mod manifests;
#[path = "../local_run/processes.rs"]
#[allow(dead_code, reason = "none is killed here")]
mod processes;
#[path = "../cluster_training/trial.rs"]
#[allow(dead_code, reason = "other trainings are disturbed")]
mod trial;
#[path = "../venv/mod.rs"]
mod venv;

use std::fs;

use training_job_mlkube::TfJob;
use training_job_testing::cluster::repository;

use trial::{Surroundings, Trial};

/// The job of the first operator for TensorFlow, with default parameter servers and TensorBoard.
#[tokio::test]
async fn a_tfjob_of_mlkube_trains() {
    let tensorflow = Surroundings {
        venv: "tensorflow",
        folder: "legacy",
    };
    let trial = Trial::shared("train-tfjob", tensorflow).await;
    let job = fs::read_to_string(repository().join("examples/legacy/tfjob.yaml")).unwrap();
    trial.create(&job).await;
    trial.success::<TfJob>("plane").await;
    trial.node.wait_for_line(" | RESULT loss=").await;
    let job: Option<TfJob> = trial.plane.wait(&trial.namespace, "plane", |_| true).await;
    let status = job.and_then(|job| job.status).unwrap();
    assert_eq!((&*status.phase, &*status.state), ("Done", "Succeeded"));
    trial.end().await;
}
