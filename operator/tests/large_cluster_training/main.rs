//! PyTorch, JAX and Paddle on a real API server, killed during training. `cluster_training` covers the other
//! frameworks. `make test-frameworks` runs this test, which needs downloads of 140 to 220 MB each.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

#[path = "../large_training/example.rs"]
#[allow(dead_code, reason = "local runs look at more")]
mod example;
#[path = "../cluster_training/jobs.rs"]
#[allow(dead_code, reason = "other trainings are looked at more closely")]
mod jobs;
#[path = "../install/manifests.rs"]
#[allow(dead_code, reason = "what the permissions are is another test's")]
mod manifests;
#[path = "../local_run/processes.rs"]
#[allow(dead_code, reason = "of each pod the first process is killed")]
mod processes;
#[path = "../cluster_training/trial.rs"]
#[allow(dead_code, reason = "other trainings are disturbed in other ways")]
mod trial;
#[path = "../venv/mod.rs"]
mod venv;

use serde::Serialize;
use training_job::TrainingJob;
use training_job::api::ConditionType;
use training_job_jax::JAXJob;
use training_job_paddle::PaddleJob;
use training_job_pytorch::PyTorchJob;
use training_job_testing::cluster::Signal;

use example::{Example, JAX, PADDLE, PYTORCH};
use trial::{Surroundings, Trial};

impl Example {
    /// Kills the first process of a pod once the training has begun. All replicas must restart, and all must have the
    /// same model. The status must name that pod, although the others failed as a consequence.
    async fn survives<J: TrainingJob + Serialize>(self, pod: &str, begun: &str) {
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
        .survives::<PyTorchJob>("circles-worker-1", " | epoch=10 ")
        .await;
}

#[tokio::test]
async fn jax_trains_though_a_process_is_killed() {
    JAX.survives::<JAXJob>("rings-worker-1", " | step=50 ").await;
}

#[tokio::test]
async fn paddle_trains_though_a_launcher_is_killed() {
    PADDLE.survives::<PaddleJob>("waves-worker-1", "epoch=10 ").await;
}
