//! Changes that a user makes to a job during training.

use training_job::api::ConditionType;
use training_job_mxnet::MXJob;
use training_operator_testing::cluster_training::trial::{MXNET, Trial};

use super::losses::{begin, expect_trained};

#[tokio::test]
async fn of_a_deleted_job_nothing_is_left() {
    let trial = Trial::shared("delete", MXNET).await;
    begin(&trial).await;
    trial.kubectl(&["delete", "mxjob", "spirals"]).await;
    trial.no_pods().await;
    trial.no_services().await;
    trial.end().await;
}

#[tokio::test]
async fn a_suspended_job_has_no_pods_and_succeeds_once_it_is_resumed() {
    let trial = Trial::shared("suspend", MXNET).await;
    begin(&trial).await;
    suspend(&trial, true).await;
    trial
        .condition::<MXJob>("spirals", ConditionType::Suspended)
        .await;
    trial.no_pods().await;
    suspend(&trial, false).await;
    expect_trained(&trial, 0).await;
    trial.end().await;
}

async fn suspend(trial: &Trial<'_>, suspend: bool) {
    let patch = format!(r#"{{"spec":{{"runPolicy":{{"suspend":{suspend}}}}}}}"#);
    trial
        .kubectl(&["patch", "mxjob", "spirals", "--type=merge", "-p", &patch])
        .await;
}
