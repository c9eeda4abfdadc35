//! Trains and tunes with the examples.

use std::fs;

use training_job::api::ConditionStatus;
use training_job_mlkube::MxJob;
use training_job_mxnet::MXJob;
use training_job_testbed::cluster::repository;
use training_job_xgboost::XGBoostJob;
use training_operator_testing::cluster_training::trial::{MXNET, Surroundings, Trial};

/// The pods of `examples/mxnet/train.yaml`.
pub(crate) const SPIRALS: [&str; 5] = [
    "spirals-scheduler-0",
    "spirals-server-0",
    "spirals-server-1",
    "spirals-worker-0",
    "spirals-worker-1",
];

pub(crate) fn example(path: &str) -> String {
    fs::read_to_string(repository().join("examples").join(path)).unwrap()
}

#[tokio::test]
async fn mxnet_trains() {
    let trial = Trial::shared("train", MXNET).await;
    trial.create(&example("mxnet/train.yaml")).await;
    trial.success::<MXJob>("spirals").await;
    // Pods that end slowly may have been deleted.
    let left = trial.all_succeed(0).await;
    assert!(left.iter().all(|pod| SPIRALS.contains(&pod.as_str())), "{left:?}");
    trial.expect_same_result("weights=", 2);
    let status = trial.status::<MXJob>("spirals", |_| true).await;
    let conditions: Vec<_> = status
        .conditions
        .iter()
        .map(|c| (c.type_.to_string(), c.status == ConditionStatus::True))
        .collect();
    let expected = [("Created", true), ("Running", false), ("Succeeded", true)];
    assert_eq!(
        conditions,
        expected.map(|(type_, is)| (type_.to_owned(), is)),
        "{status:#?}"
    );
    trial.end().await;
}

/// The job of deepinsight/mxnet-operator.
#[tokio::test]
async fn an_mxjob_of_mlkube_trains() {
    let trial = Trial::shared("train-mlkube", MXNET).await;
    trial.create(&example("legacy/mxjob-dist.yaml")).await;
    trial.success::<MxJob>("spirals-dist").await;
    trial.expect_same_result("weights=", 2);
    let job: Option<MxJob> = trial.plane.wait(&trial.namespace, "spirals-dist", |_| true).await;
    let status = job.and_then(|job| job.status).unwrap();
    assert_eq!((&*status.phase, &*status.state), ("Done", "Succeeded"));
    trial.end().await;
}

#[tokio::test]
async fn tvm_tunes() {
    let tvm = Surroundings {
        venv: "tvm",
        folder: "mxnet",
    };
    let trial = Trial::shared("tune", tvm).await;
    trial.create(&example("mxnet/tune.yaml")).await;
    trial.success::<MXJob>("matmul").await;
    trial.node.wait_for_line("matmul-tuner-0 | RESULT records=").await;
    // The tracker and the servers never end, so they are deleted.
    trial.pods_left(1).await;
    assert_eq!(trial.all_succeed(0).await, ["matmul-tuner-0"]);
    trial.end().await;
}

#[tokio::test]
async fn xgboost_trains() {
    let xgboost = Surroundings {
        venv: "xgboost",
        folder: "xgboost",
    };
    let trial = Trial::shared("boost", xgboost).await;
    trial.create(&example("xgboost/train.yaml")).await;
    trial.success::<XGBoostJob>("moons").await;
    let left = trial.all_succeed(0).await;
    assert!(left.contains(&"moons-master-0".to_owned()), "{left:?}");
    trial.expect_same_result("model=", 3);
    trial.end().await;
}
