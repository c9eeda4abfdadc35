//! TensorFlow on a real API server. `training` covers the other frameworks. `make test-tensorflow` runs this
//! test, which needs a download of 400 MB.

use std::fs;

use training_job_mlkube::TfJob;
use training_job_testbed::cluster::repository;
use training_operator_testing::cluster_training::trial::{Surroundings, Trial};

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
