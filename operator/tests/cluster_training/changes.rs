//! Changes that a user makes to a job during training.

use training_job::api::ConditionType;
use training_job_mxnet::MXJob;

use crate::trial::{MXNET, Trial};

// Matrix: G2
#[tokio::test]
async fn of_a_deleted_job_nothing_is_left() {
    let trial = Trial::shared("delete", MXNET).await;
    trial.begin().await;
    trial.kubectl(&["delete", "mxjob", "spirals"]).await;
    trial.no_pods().await;
    trial.no_services().await;
    trial.end().await;
}

// Matrix: G3
#[tokio::test]
async fn a_suspended_job_has_no_pods_and_succeeds_once_it_is_resumed() {
    let trial = Trial::shared("suspend", MXNET).await;
    trial.begin().await;
    trial.suspend(true).await;
    trial
        .condition::<MXJob>("spirals", ConditionType::Suspended)
        .await;
    trial.no_pods().await;
    trial.suspend(false).await;
    trial.expect_trained(0).await;
    trial.end().await;
}

impl Trial<'_> {
    async fn suspend(&self, suspend: bool) {
        let patch = format!(r#"{{"spec":{{"runPolicy":{{"suspend":{suspend}}}}}}}"#);
        self.kubectl(&["patch", "mxjob", "spirals", "--type=merge", "-p", &patch])
            .await;
    }
}
