//! Open MPI: a launcher whose `mpirun` starts ranks in the workers.

use serde_json::json;
use training_job::api::ConditionType;
use training_job_mpi::MPIJob;
use training_job_testbed::cluster::Signal;
use training_operator_testing::cluster_training::trial::{Surroundings, Trial};

use super::training::example;

const MPI: Surroundings = Surroundings {
    venv: "mpi",
    folder: "mpi",
};

/// Checks that both ranks have the same model and that each ran in a worker of its own. Workers are deleted at the end.
async fn expect_ranks_trained(trial: &Trial<'_>) {
    trial.success::<MPIJob>("moons").await;
    trial.pods_left(1).await;
    trial.expect_same_result("weights=", 2);
    for (rank, worker) in [(0, "moons-worker-0"), (1, "moons-worker-1")] {
        let place = format!("moons-launcher/mpi | rank={rank} of 2 in {worker}");
        trial.node.wait_for_line(&place).await;
    }
}

#[tokio::test]
async fn mpi_trains() {
    let trial = Trial::shared("train-mpi", MPI).await;
    trial.create(&example("mpi/train.yaml")).await;
    expect_ranks_trained(&trial).await;
    assert_eq!(trial.all_succeed(0).await, ["moons-launcher"]);
    trial.end().await;
}

/// Open MPI ends with exit code 0 in this case, but the job must not succeed.
#[tokio::test]
async fn a_killed_worker_of_mpi_begins_the_job_anew() {
    let trial = Trial::shared("worker-mpi", MPI).await;
    let job = example("mpi/train.yaml");
    let slow = job.replace("\"2\", python3", "\"2\", env, PAUSE=0.2, python3");
    assert_ne!(job, slow);
    trial.create(&slow).await;
    trial.node.wait_for_line("moons-launcher/mpi | step=50 ").await;
    trial.signal_first_of_pod("moons-worker-1", Signal::KILL);
    trial
        .condition::<MPIJob>("moons", ConditionType::Restarting)
        .await;
    expect_ranks_trained(&trial).await;
    trial.end().await;
}

/// The launcher continues when a worker is added, and its script prints the new worker.
#[tokio::test]
async fn a_launcher_sees_a_worker_that_is_added() {
    let trial = Trial::shared("scale-mpi", MPI).await;
    let wait = "echo up; until /etc/mpi/discover_hosts.sh | grep worker-1; do sleep 0.1; done";
    let role = |replicas: u32, script: &str| {
        let containers = json!([{"name": "mpi", "image": "none", "command": ["sh", "-c", script]}]);
        json!({"replicas": replicas, "template": {"spec": {"containers": containers}}})
    };
    let roles = json!({"Launcher": role(1, wait), "Worker": role(1, "sleep 600")});
    let job = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "metadata": {"name": "grows"},
        "spec": {"mpiReplicaSpecs": roles},
    });
    trial.create(&job.to_string()).await;
    trial.node.wait_for_line("grows-launcher/mpi | up").await;
    let more = r#"{"spec":{"mpiReplicaSpecs":{"Worker":{"replicas":2}}}}"#;
    trial
        .kubectl(&[
            "patch",
            "mpijobs.kubeflow.org",
            "grows",
            "--type=merge",
            "-p",
            more,
        ])
        .await;
    trial
        .node
        .wait_for_line("grows-launcher/mpi | grows-worker-1:1")
        .await;
    trial.success::<MPIJob>("grows").await;
    trial.end().await;
}
