//! Failures of components during training.

use training_job::api::ConditionType;
use training_job_mxnet::MXJob;
use training_job_testbed::cluster::Signal;
use training_operator_testing::cluster_training::trial::{MXNET, Trial, fresh, node};
use training_operator_testing::local_run::manifest::Manifest;

use super::training::SPIRALS;

/// Returns a training that takes some seconds, so that a failure can interrupt it. Its pods are kept for inspection.
pub(crate) fn slow() -> Manifest {
    Manifest::example("train.yaml")
        .policy("cleanPodPolicy", "None")
        .env("STEPS", "40")
        .env("PAUSE", "0.1")
}

/// Creates the slow training and waits until it has begun.
pub(crate) async fn begin(trial: &Trial<'_>) {
    trial.create(&slow().text()).await;
    trial.mid_training().await;
}

/// Checks that the training succeeds after this number of restarts.
pub(crate) async fn expect_trained(trial: &Trial<'_>, restarts: u32) {
    trial.success::<MXJob>("spirals").await;
    assert_eq!(trial.all_succeed(restarts).await, SPIRALS);
    trial.expect_same_result("weights=", 2);
}

/// Checks that the whole job restarts and that its status names the failed pod.
async fn expect_restarted_because_of(trial: &Trial<'_>, pod: &str, exit_code: i32) {
    let status = trial
        .condition::<MXJob>("spirals", ConditionType::Restarting)
        .await;
    let failure = status.failure.unwrap();
    assert_eq!(failure.pod.as_deref(), Some(pod));
    assert_eq!(failure.exit_code, Some(exit_code));
    expect_trained(trial, 1).await;
}

/// Pods and processes are unaffected by an outage of the operator.
#[tokio::test]
async fn a_killed_operator_is_not_noticed_by_the_job() {
    let mut trial = Trial::shared("operator", MXNET).await;
    begin(&trial).await;
    let before = trial.pods().await;
    trial.replace_operator().await;
    expect_trained(&trial, 0).await;
    expect_the_same_pods(&trial, &before).await;
    trial.end().await;
}

/// Pods and processes are unaffected by an outage of the API server.
#[tokio::test]
async fn a_killed_api_server_is_not_noticed_by_the_job() {
    let plane = fresh().await;
    let trial = Trial::new(&plane, "outage", MXNET).await;
    begin(&trial).await;
    let before = trial.pods().await;
    plane.stop_api_server();
    // A node that starts during the outage waits.
    let late = plane.spawn(node(&plane, "local-late", "default"));
    late.wait_for_line("waiting: the API server https://").await;
    // Changes during the outage are observed after it.
    trial.node.wait_for_line(" | step=20 rank=").await;
    plane.start_api_server().await;
    late.wait_for_line("node local-late of https://").await;
    expect_trained(&trial, 0).await;
    expect_the_same_pods(&trial, &before).await;
    trial.end().await;
}

async fn expect_the_same_pods(
    trial: &Trial<'_>,
    before: &std::collections::BTreeMap<String, training_operator_testing::cluster_training::jobs::Stand>,
) {
    let after = trial.pods().await;
    assert_eq!(before.len(), SPIRALS.len());
    for (name, stand) in before {
        assert_eq!(after[name].uid, stand.uid, "{name}");
    }
}

/// The other replicas would wait for it forever.
#[tokio::test]
async fn a_killed_worker_begins_the_job_anew() {
    let trial = Trial::shared("worker", MXNET).await;
    begin(&trial).await;
    trial.signal_pod("spirals-worker-1", Signal::KILL);
    expect_restarted_because_of(&trial, "spirals-worker-1", 137).await;
    trial.end().await;
}

#[tokio::test]
async fn a_deleted_pod_begins_the_job_anew() {
    let trial = Trial::shared("pod", MXNET).await;
    begin(&trial).await;
    trial.kubectl(&["delete", "pod", "spirals-worker-0"]).await;
    expect_trained(&trial, 1).await;
    trial.end().await;
}

/// The processes of a node end with its agent, however the agent ends. The next agent reports this.
#[tokio::test]
async fn a_killed_node_begins_the_job_anew() {
    let mut trial = Trial::shared("node", MXNET).await;
    begin(&trial).await;
    trial.replace_node().await;
    expect_trained(&trial, 1).await;
    trial.end().await;
}
