//! Deadlines and TTLs.

use serde_json::{Value, json};
use training_job_simulation::faults::PodFate::{self, Runs, Succeeds};
use training_job_simulation::simulation::{SMALL, Simulation};

use crate::harness::{assert_ends, either, event_count, remove, settle_and_check, sim_of, with_policy};

/// Returns the time at which a timed action happens, in seconds after the job's creation.
async fn due(
    script: fn(&str, u32) -> PodFate,
    policy: Value,
    restarts: bool,
    over: impl Fn(&Simulation) -> bool,
) -> u64 {
    let mut sim = sim_of(script, policy).await;
    let begun = tokio::time::Instant::now();
    for second in 0..4_000 {
        if over(&sim) {
            break;
        }
        // The operator is killed every half minute, and starts again five seconds later.
        if restarts && second % 35 == 30 {
            sim.kill().await;
        } else if restarts && second % 35 == 0 && sim.operators() == 0 {
            sim.start();
        }
        sim.advance(1).await;
    }
    let seconds = begun.elapsed().as_secs();
    sim.kill().await;
    sim.start();
    settle_and_check(&mut sim).await;
    assert!(event_count(&sim, "SuccessfulDeleteJob") <= 1 && event_count(&sim, "MXJobFailed") <= 1);
    seconds
}

#[tokio::test(start_paused = true)]
async fn times_come_though_the_operator_is_started_anew() {
    let ended = |sim: &Simulation| sim.conditions("job").ends_with("Failed");
    let deadline = json!({"activeDeadlineSeconds": 1_000});
    let gone = |sim: &Simulation| sim.stored("mxjobs", "job").is_null();
    let ttl = json!({"ttlSecondsAfterFinished": 1_000});
    for restarts in [false, true] {
        let at = due(|_, _| Runs, deadline.clone(), restarts, ended).await;
        assert!((1_000..1_010).contains(&at), "a deadline at {at} s");
        let at = due(|_, _| Succeeds(20), ttl.clone(), restarts, gone).await;
        assert!((1_021..1_035).contains(&at), "a time to live over at {at} s");
    }
}

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
