//! Jobs whose pods must run within a time limit.

use serde_json::json;
use tokio::sync::OnceCell;

use super::process::{Queues, Setup};
use crate::jobs::{JAX, Kind, PODS, PYTORCH};
use crate::stage::{Operators, Stage, is};

/// Returns a Kueue that evicts a job if not all its pods run after some seconds, and retries it a second later.
async fn impatient() -> &'static Queues {
    static SHARED: OnceCell<Queues> = OnceCell::const_new();
    let setup = Setup {
        wait_for_pods_ready: json!({
            "timeout": "8s", "blockAdmission": false,
            "requeuingStrategy": {"backoffBaseSeconds": 1, "timestamp": "Eviction"},
        }),
        ..Setup::default()
    };
    SHARED.get_or_init(|| Queues::start(setup)).await
}

/// Kueue derives readiness from the job's condition Running.
async fn a_job_whose_pods_do_not_start_in_time_is_evicted_and_tried_again(kind: Kind, operators: Operators) {
    let mut stage = Stage::with_queue(impatient().await, "ready", (kind, operators)).await;
    stage.nodes.start_pods(false);
    stage.create(&stage.job("job")).await;
    stage.has("job", PODS).await;
    stage.turn();
    stage
        .workload("job", |workload| is(workload, "Evicted", "True"))
        .await;
    stage.condition("job", "Suspended").await;
    stage.turn();
    stage.has("job", 0).await;
    stage.nodes.start_pods(true);
    stage.runs("job", PODS).await;
    stage
        .workload("job", |workload| is(workload, "PodsReady", "True"))
        .await;
    stage.finishes("job", PODS).await;
    stage.history.expect_at_most(PODS).await;
    stage.end();
}

mod undisturbed {
    use super::*;

    #[tokio::test]
    async fn a_job_whose_pods_do_not_start_in_time_is_evicted_and_tried_again() {
        super::a_job_whose_pods_do_not_start_in_time_is_evicted_and_tried_again(JAX, Operators::Stay).await;
    }
}

mod while_operators_are_killed {
    use super::*;

    #[tokio::test]
    async fn a_job_whose_pods_do_not_start_in_time_is_evicted_and_tried_again() {
        let killed = Operators::AreKilled;
        super::a_job_whose_pods_do_not_start_in_time_is_evicted_and_tried_again(PYTORCH, killed).await;
    }
}
