//! A busy or broken API server, and unreadable responses.

use serde_json::json;
use training_job_simulation::faults::CallFault::{
    Busy, Late, ResetAfter, Slow, Throttled, Truncated, Unanswered,
};
use training_job_simulation::faults::PodFate::{Runs, Succeeds};
use training_job_simulation::simulation::{SMALL, Simulation, train};

use crate::harness::{
    assert_ends, edit_job, event_count, everywhere, reads, settle_and_check, success, until, with_policy,
    worker,
};

#[tokio::test(start_paused = true)]
async fn the_requested_delay_is_kept() {
    let calls = [
        ("create", "pods"),
        ("create", "services"),
        ("patch", "mxjobs/status"),
    ];
    for (verb, resource) in calls {
        let mut sim = Simulation::new(|_, _| Succeeds(200));
        sim.network.fail_next(verb, resource, 1, Busy(20));
        sim.create(train("job", &SMALL)).await;
        until(|| sim.network.count(verb, resource) > 0).await;
        sim.network.take_calls();
        // The wait applies even if the job changes meanwhile.
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        edit_job(&sim, label).await;
        sim.advance(19).await;
        let calls = sim.network.take_calls();
        assert_eq!(calls, [], "{verb} {resource}");
        sim.advance(6).await;
        assert!(sim.network.count(verb, resource) > 0, "{verb} {resource}");
        settle_and_check(&mut sim).await;
    }
}

/// The status is stored, but its writer does not know. The events that follow it are sent once it does.
#[tokio::test(start_paused = true)]
async fn the_events_of_a_status_whose_response_is_lost_are_sent_once() {
    for fault in [ResetAfter, Unanswered, Late(50), Late(70_000), Truncated] {
        for unlucky in 1..=3 {
            let mut sim = Simulation::new(|_, _| Succeeds(20));
            let (mut writes, lost) = (0, fault.clone());
            sim.network.add_rule(move |call| {
                writes += u32::from(call.is("patch", "mxjobs/status"));
                (call.is("patch", "mxjobs/status") && writes == unlucky).then(|| lost.clone())
            });
            sim.create(train("job", &SMALL)).await;
            sim.advance(120).await;
            let told = event_count(&sim, "MXJobSucceeded");
            assert_eq!(told, 1, "{fault:?} for write {unlucky}");
            settle_and_check(&mut sim).await;
        }
    }
}

/// For ten minutes each call about one job, which has many pods, is denied.
#[tokio::test(start_paused = true)]
async fn a_job_that_is_refused_for_long_holds_up_no_other() {
    let mut sim = Simulation::without_operator(|_, _| Succeeds(20));
    sim.network
        .add_rule(|call| (call.writes() && call.name.starts_with("big")).then_some(Throttled("1")));
    sim.start();
    sim.create(train("big", &[("Scheduler", 1), ("Worker", 100)]))
        .await;
    for number in 0..10 {
        sim.create(train(&format!("job-{number}"), &SMALL)).await;
    }
    sim.advance(60).await;
    for number in 0..10 {
        let conditions = sim.conditions(&format!("job-{number}"));
        assert!(conditions.ends_with("Succeeded"), "{number}: {conditions}");
    }
    sim.advance(540).await;
    let calls = sim.network.count("patch", "mxjobs/status");
    assert!(calls < 10 * 3 + 20, "{calls} statuses");
    settle_and_check(&mut sim).await;
    assert_ends(&sim, "big", "Succeeded", "");
}

/// The operator abandons the slowest call before its response comes, or before it takes effect. (Warning headers are
/// tested on a real API server.)
#[test]
fn answers_take_their_time() {
    let slow = [
        Slow(1_000, 1_000),
        Slow(0, 25_000),
        Slow(25_000, 0),
        Slow(0, 60_000),
    ];
    everywhere(&success(), |_| true, &slow);
    everywhere(&success(), reads, &[Slow(60_000, 0)]);
}

/// Only events take long to be stored. A changed count is still reported soon.
#[tokio::test(start_paused = true)]
async fn slow_events_keep_no_count_back() {
    let mut sim = Simulation::without_operator(|_, _| Runs);
    sim.network
        .add_rule(|call| call.is("create", "events").then_some(Slow(10_000, 10_000)));
    sim.start();
    sim.create(train("job", &SMALL)).await;
    sim.advance(60).await;
    let active = || sim.status("job")["replicaStatuses"]["Worker"]["active"].clone();
    assert_eq!(active(), 2);
    sim.edit("job", worker(json!({"replicas": 1}))).await;
    sim.advance(15).await;
    assert_eq!(active(), 1);
    settle_and_check(&mut sim).await;
}

#[tokio::test(start_paused = true)]
async fn all_answers_take_their_time() {
    for millis in [1_000, 10_000] {
        let mut sim = Simulation::without_operator(|_, _| Succeeds(200));
        sim.network.add_rule(move |_| Some(Slow(millis / 2, millis / 2)));
        sim.start();
        sim.create(with_policy("job", &SMALL, json!({"cleanPodPolicy": "All"})))
            .await;
        sim.advance(400).await;
        assert_ends(&sim, "job", "Succeeded", millis);
        let calls = sim.network.take_calls();
        let work = calls
            .iter()
            .filter(|c| c.writes() && c.resource != "events")
            .count();
        // Services, pods, three or four statuses, and the clean-up.
        assert!(work <= 4 * 4 + 5, "{millis}: {work} writes");
        settle_and_check(&mut sim).await;
    }
}
