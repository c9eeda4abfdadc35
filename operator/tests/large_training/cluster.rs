//! PyTorch, JAX and Paddle on a real API server, killed during training. `training` covers the other
//! frameworks. `make test-frameworks` runs this test, which needs downloads of 125 to 220 MB each.

use serde::Serialize;
use training_job::TrainingJob;
use training_job::api::ConditionType;
use training_job_jax::JAXJob;
use training_job_paddle::PaddleJob;
use training_job_pytorch::PyTorchJob;
use training_job_testbed::cluster::Signal;
use training_operator_testing::cluster_training::trial::{Surroundings, Trial};

use super::example::{Example, JAX, PADDLE, PYTORCH};

impl Example {
    /// Kills the first process of a pod once the training has begun. All replicas must restart, and all must have the
    /// same model. The status must name that pod, although the others failed as a consequence.
    async fn survives_in_a_cluster<J: TrainingJob + Serialize>(self, pod: &str, begun: &str) {
        let surroundings = Surroundings {
            venv: self.framework,
            folder: self.framework,
        };
        let trial = Trial::shared(&format!("train-{}", self.framework), surroundings).await;
        trial.create(&self.slow("0.2")).await;
        trial.node.wait_for_line(begun).await;
        trial.signal_first_of_pod(pod, Signal::KILL);
        let status = trial.condition::<J>(self.name, ConditionType::Restarting).await;
        let failure = status.failure.unwrap();
        let named = (failure.pod.as_deref(), failure.exit_code);
        assert_eq!(named, (Some(pod), Some(137)), "{}", trial.node.text());
        trial.success::<J>(self.name).await;
        trial.expect_same_result("weights=", self.ranks);
        trial.end().await;
    }
}

#[tokio::test]
async fn pytorch_trains_though_a_worker_is_killed() {
    PYTORCH
        .survives_in_a_cluster::<PyTorchJob>("circles-worker-1", " | epoch=10 ")
        .await;
}

#[tokio::test]
async fn jax_trains_though_a_process_is_killed() {
    JAX.survives_in_a_cluster::<JAXJob>("rings-worker-1", " | step=50 ")
        .await;
}

#[tokio::test]
async fn paddle_trains_though_a_launcher_is_killed() {
    PADDLE
        .survives_in_a_cluster::<PaddleJob>("waves-worker-1", "epoch=10 ")
        .await;
}
