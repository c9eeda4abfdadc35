//! Calls and responses that are lost.

use serde_json::json;
use training_job_simulation::faults::CallFault::{Garbled, Lost};
use training_job_simulation::faults::PodFate::Succeeds;
use training_job_simulation::simulation::{SMALL, Simulation, train};

use crate::harness::{
    PAIR, assert_ends, assert_made, remove, settle_and_check, succeeds, toy_job, toys, until, with_policy,
};

/// Reads have a timeout, too. A job whose calls are all lost does not delay others.
#[tokio::test(start_paused = true)]
async fn no_byte_comes_back() {
    let mut sim = Simulation::without_operator(|_, _| Succeeds(20));
    sim.network
        .add_rule(|call| call.name.starts_with("stuck").then_some(Lost));
    let mut swallowed = 40;
    sim.network.add_rule(move |call| {
        let hit = swallowed > 0 && call.is("create", "services");
        swallowed -= usize::from(hit);
        hit.then_some(Lost)
    });
    sim.start();
    for number in 0..20 {
        sim.create(train(&format!("stuck-{number}"), &SMALL)).await;
    }
    sim.create(train("job", &SMALL)).await;
    // Two rounds of calls, each with a timeout of half a minute.
    sim.advance(120).await;
    assert_ends(&sim, "job", "Succeeded", "");
    sim.advance(1_800).await;
    let tries = sim.network.count("patch", "mxjobs/status");
    assert!(tries < 20 * 15, "{tries} tries in half an hour");
    settle_and_check(&mut sim).await;
    assert_ends(&sim, "stuck-0", "Succeeded", "");
}

/// A job's end is stored, but neither the response nor a watch reports it. The operator reads the job before it does
/// anything else.
#[tokio::test(start_paused = true)]
async fn a_stored_end_is_in_no_response_and_no_watch() {
    for gone in [false, true] {
        let mut sim = Simulation::new(succeeds);
        sim.create(train("job", &PAIR)).await;
        sim.advance(199).await;
        sim.cluster.freeze_watches(Some("mxjobs"));
        sim.network
            .fail_next("patch", "mxjobs/status", 1, Garbled(504, "Timeout"));
        sim.network.take_calls();
        until(|| sim.conditions("job").ends_with("Succeeded")).await;
        if gone {
            sim.delete("job").await;
        }
        sim.advance(8).await;
        let mut calls = sim.network.take_calls();
        // The service that the others dialed, and the event about it.
        calls.retain(|call| {
            !call.is("delete", "services") && !call.is("create", "events") && !call.is("probe", "")
        });
        let of = |verb: &str| calls.iter().filter(|c| c.verb == verb).count();
        assert_eq!((of("patch"), of("list"), calls.len()), (1, 1, 2), "{calls:?}");
        assert!(remove(&sim, "pods", "job-worker-0").await != gone);
        sim.advance(60).await;
        assert_made(&sim, "pods job-worker-0", 1, "");
        settle_and_check(&mut sim).await;
    }
}

/// The job's TTL has passed, and neither the response nor a watch reports that its deletion took effect.
#[tokio::test(start_paused = true)]
async fn the_deletion_of_a_job_is_in_no_response_and_no_watch() {
    let mut sim = Simulation::new(succeeds);
    sim.create(with_policy("job", &PAIR, json!({"ttlSecondsAfterFinished": 60})))
        .await;
    sim.advance(220).await;
    assert_ends(&sim, "job", "Succeeded", "");
    sim.cluster.freeze_watches(Some("mxjobs"));
    sim.network
        .fail_next("delete", "mxjobs", 1, Garbled(504, "Timeout"));
    sim.network.take_calls();
    sim.advance(100).await;
    assert_eq!(sim.network.count("delete", "mxjobs"), 1);
    assert_eq!(
        sim.network.count("list", "mxjobs"),
        1,
        "it asks what became of it"
    );
    settle_and_check(&mut sim).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_respond_gets_no_call_for_each_pod() {
    let sim = toys(succeeds);
    sim.network.fail_next("create", "pods", 1_000, Lost);
    sim.create(toy_job("job", &[("Scheduler", 1), ("Worker", 200)]))
        .await;
    sim.advance(40).await;
    let creates = sim.network.count("create", "pods");
    assert!(creates <= 2 * 32, "{creates} creates under way");
    sim.assert_no_violations();
}
