//! What is due at a time.

use serde_json::{Value, json};
use training_job_simulation::kubelet::Fate::{self, Runs, Succeeds};
use training_job_simulation::world::{SMALL, World, train, with};

use crate::stage::{remove, rest, told};

/// When what is due at a time happens, in seconds after the job was made.
async fn due(
    script: fn(&str, u32) -> Fate,
    policy: Value,
    restarts: bool,
    over: impl Fn(&World) -> bool,
) -> u64 {
    let mut world = World::new(script);
    world
        .create(with(train("job", &SMALL), json!({"runPolicy": policy})))
        .await;
    let begun = tokio::time::Instant::now();
    for second in 0..4_000 {
        if over(&world) {
            break;
        }
        // Killed every half minute, started anew five seconds later.
        if restarts && second % 35 == 30 {
            world.kill().await;
        } else if restarts && second % 35 == 0 && world.operators() == 0 {
            world.start();
        }
        world.pass(1).await;
    }
    let seconds = begun.elapsed().as_secs();
    world.kill().await;
    world.start();
    rest(&mut world).await;
    assert!(told(&world, "SuccessfulDeleteJob") <= 1 && told(&world, "MXJobFailed") <= 1);
    seconds
}

#[tokio::test(start_paused = true)]
async fn g8_times_come_though_the_operator_is_started_anew() {
    let ended = |world: &World| world.conditions("job").ends_with("Failed");
    let deadline = json!({"activeDeadlineSeconds": 1_000});
    let gone = |world: &World| world.stored("mxjobs", "job").is_null();
    let ttl = json!({"ttlSecondsAfterFinished": 1_000});
    for restarts in [false, true] {
        let at = due(|_, _| Runs, deadline.clone(), restarts, ended).await;
        assert!((1_000..1_010).contains(&at), "a deadline at {at} s");
        let at = due(|_, _| Succeeds(20), ttl.clone(), restarts, gone).await;
        assert!((1_021..1_035).contains(&at), "a time to live over at {at} s");
    }
}

/// Both were over while nobody was there.
#[tokio::test(start_paused = true)]
async fn g8_times_went_by_while_the_operator_was_away() {
    let mut world = World::new(|name, _| {
        if name.starts_with("hangs") {
            Runs
        } else {
            Succeeds(20)
        }
    });
    let deadline = json!({"runPolicy": {"activeDeadlineSeconds": 100}});
    world.create(with(train("hangs", &SMALL), deadline)).await;
    let ttl = json!({"runPolicy": {"ttlSecondsAfterFinished": 100}});
    world.create(with(train("ends", &SMALL), ttl)).await;
    world.pass(50).await;
    world.kill().await;
    world.pass(1_000).await;
    world.start();
    world.pass(5).await;
    assert!(world.conditions("hangs").ends_with("Failed"));
    assert!(world.stored("mxjobs", "ends").is_null());
    rest(&mut world).await;
    assert_eq!(told(&world, "MXJobFailed"), 1);
    assert!(!remove(&world, "mxjobs", "ends").await);
}
