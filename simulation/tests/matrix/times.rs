//! Deadlines and TTLs.

use serde_json::json;
use training_job_simulation::faults::PodFate::{Runs, Succeeds};
use training_job_simulation::simulation::{SMALL, Simulation};

use crate::harness::{assert_ends, either, event_count, remove, settle_and_check, with_policy};

/// Both times passed while no operator ran.
#[tokio::test(start_paused = true)]
async fn times_went_by_while_the_operator_was_away() {
    let mut sim = Simulation::new(|name, _| either(name, "hangs", Runs, Succeeds(20)));
    sim.create(with_policy(
        "hangs",
        &SMALL,
        json!({"activeDeadlineSeconds": 100}),
    ))
    .await;
    sim.create(with_policy(
        "ends",
        &SMALL,
        json!({"ttlSecondsAfterFinished": 100}),
    ))
    .await;
    sim.advance(50).await;
    sim.kill().await;
    sim.advance(1_000).await;
    sim.start();
    sim.advance(5).await;
    assert_ends(&sim, "hangs", "Failed", "");
    assert!(sim.stored("mxjobs", "ends").is_null());
    settle_and_check(&mut sim).await;
    assert_eq!(event_count(&sim, "MXJobFailed"), 1);
    assert!(!remove(&sim, "mxjobs", "ends").await);
}
