//! Answers, or calls, that do not arrive.

use serde_json::json;
use training_job_simulation::fault::Fault::{Garbled, Late, Lost, Reset, ResetAfter, Unanswered};
use training_job_simulation::kubelet::Fate::Succeeds;
use training_job_simulation::world::{SMALL, World, train, with};

use crate::stage::{PAIR, ends_well, everywhere, made, reads, remove, rest, restart, success, writes};

#[test]
fn b7_it_takes_effect_and_the_answer_is_lost() {
    let lost = [ResetAfter, Unanswered, Garbled(504, "Timeout")];
    everywhere(&success(), writes, &lost);
    everywhere(&restart(), writes, &[Unanswered]);
}

/// It takes effect when the operator has long given it up.
#[test]
fn b7_it_takes_effect_later() {
    let not_events =
        |site: &training_job_simulation::fault::Site| writes(site) && !site.calls.ends_with("events");
    for mut life in [success(), restart()] {
        // What comes late was right when it was sent.
        life.scenario.settings.faults = vec![Late(35_000)];
        everywhere(&life, not_events, &[Late(35_000)]);
    }
}

#[test]
fn b8_it_never_arrives() {
    everywhere(&success(), writes, &[Lost, Reset]);
    everywhere(&restart(), writes, &[Lost]);
}

/// Reads, too, end some time without an answer, and a job whose calls are all swallowed holds up no other, nor
/// its place in the work.
#[tokio::test(start_paused = true)]
async fn b9_no_byte_comes_back() {
    let mut world = World::without_operator(|_, _| Succeeds(20));
    world
        .network
        .rule(|call| call.name.starts_with("stuck").then_some(Lost));
    let mut swallowed = 40;
    world.network.rule(move |call| {
        let hit = swallowed > 0 && call.is("create", "services");
        swallowed -= usize::from(hit);
        hit.then_some(Lost)
    });
    world.start();
    for number in 0..20 {
        world.create(train(&format!("stuck-{number}"), &SMALL)).await;
    }
    world.create(train("job", &SMALL)).await;
    // Two rounds of calls that are given up after half a minute.
    world.pass(120).await;
    assert!(
        world.conditions("job").ends_with("Succeeded"),
        "{}",
        world.conditions("job")
    );
    world.pass(1_800).await;
    let tries = world.network.count("patch", "mxjobs/status");
    assert!(tries < 20 * 15, "{tries} tries in half an hour");
    rest(&mut world).await;
    assert!(world.conditions("stuck-0").ends_with("Succeeded"));
}

#[test]
fn b9_no_byte_comes_back_to_a_read() {
    everywhere(&success(), reads, &[Lost, Unanswered]);
}

/// The end of a job is stored, which neither the answer tells nor a watch: the operator asks before it does anything.
#[tokio::test(start_paused = true)]
async fn b7_an_end_takes_effect_and_nothing_tells() {
    for gone in [false, true] {
        let mut world = World::new(ends_well);
        world.create(train("job", &PAIR)).await;
        world.pass(199).await;
        world.cluster.freeze_watches(Some("mxjobs"));
        world
            .network
            .fault("patch", "mxjobs/status", 1, Garbled(504, "Timeout"));
        world.network.take();
        while !world.conditions("job").ends_with("Succeeded") {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        if gone {
            world.delete("job").await;
        }
        world.pass(8).await;
        let calls = world.network.take();
        let of = |verb: &str| calls.iter().filter(|c| c.verb == verb).count();
        assert_eq!((of("patch"), of("list"), calls.len()), (1, 1, 2), "{calls:?}");
        assert!(remove(&world, "pods", "job-worker-0").await != gone);
        world.pass(60).await;
        assert_eq!(made(&world, "pods job-worker-0").0, 1);
        rest(&mut world).await;
    }
}

/// The job has outlived its time, and nothing tells that its deletion has taken effect.
#[tokio::test(start_paused = true)]
async fn b7_the_deletion_of_a_job_takes_effect_and_nothing_tells() {
    let mut world = World::new(ends_well);
    let short = json!({"runPolicy": {"ttlSecondsAfterFinished": 60}});
    world.create(with(train("job", &PAIR), short)).await;
    world.pass(220).await;
    assert!(world.conditions("job").ends_with("Succeeded"));
    world.cluster.freeze_watches(Some("mxjobs"));
    world
        .network
        .fault("delete", "mxjobs", 1, Garbled(504, "Timeout"));
    world.network.take();
    world.pass(100).await;
    assert_eq!(world.network.count("delete", "mxjobs"), 1);
    assert_eq!(
        world.network.count("list", "mxjobs"),
        1,
        "it asks what became of it"
    );
    rest(&mut world).await;
}
