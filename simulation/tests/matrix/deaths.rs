//! The operator dies, or is shut down.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Notify;
use tokio::time::Instant;
use training_job_controller::Operator;
use training_job_mxnet::MXJob;
use training_job_simulation::faults::CallFault::{DiesAfter, Lost, Slow};
use training_job_simulation::faults::PodFate::Runs;
use training_job_simulation::simulation::{SMALL, Simulation, train};

use crate::harness::{assert_made, either, fill_a_page, settle_and_check, sim_of, succeeds};

#[tokio::test(start_paused = true)]
async fn the_operator_dies_before_its_lists_are_complete() {
    for (resource, page) in [("pods", 2), ("pods", 1), ("services", 1), ("mxjobs", 1)] {
        let mut sim = sim_of(
            |name, _| either(name, "a-", training_job_simulation::faults::PodFate::Pends, Runs),
            json!({}),
        )
        .await;
        sim.advance(10).await;
        if page == 2 {
            fill_a_page(&sim).await;
        }
        sim.kill().await;
        let before = sim.pods_now();
        sim.network.take_calls();
        // At first the list gets no response, then the operator dies at it. Nothing may be created meanwhile.
        let mut deaths = 0;
        sim.network.add_rule(move |call| {
            let second = call.query.contains("continue=");
            let hit = call.is("list", resource) && second == (page == 2) && deaths < 6;
            deaths += usize::from(hit);
            hit.then_some(if deaths % 2 == 1 { DiesAfter } else { Lost })
        });
        sim.start();
        for _ in 0..24 {
            sim.advance_replacing_dead(5).await;
            let calls = sim.network.take_calls();
            assert!(
                calls.iter().all(|c| !c.writes()),
                "before the list of {resource} was complete: {calls:?}"
            );
        }
        sim.advance_replacing_dead(200).await;
        assert_eq!(sim.pods_now(), before);
        if page == 1 {
            settle_and_check(&mut sim).await;
        }
        sim.assert_no_violations();
    }
}

/// The operator is shut down at each of the calls of a creation. It finishes the calls in flight, and ends within ten
/// seconds even without a response. The next operator continues.
#[tokio::test(start_paused = true)]
async fn the_operator_gets_sigterm_while_it_creates_pods() {
    for (at, slow) in (0..11).zip([Slow(2_000, 2_000), Lost].iter().cycle()) {
        let mut sim = Simulation::without_operator(succeeds);
        sim.create(train("job", &SMALL)).await;
        let (stop, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let reached = Arc::new(Notify::new());
        let (asked, told, here) = (stop.clone(), ended.clone(), reached.clone());
        let mut number = 0;
        let slow = slow.clone();
        sim.network.add_rule(move |call| {
            if call.operator > 0 || !call.writes() {
                return None;
            }
            number += 1;
            if number == at + 1 {
                asked.notify_one();
                here.notify_one();
            }
            (number > at).then(|| slow.clone())
        });
        sim.start_as(|client, options| {
            let operator = Operator::new(client, options).manage::<MXJob>();
            async move {
                operator.run_until(stop.notified()).await;
                told.notify_one();
                // The process has ended by itself. It was not killed.
                std::future::pending().await
            }
        });
        reached.notified().await;
        let begun = Instant::now();
        ended.notified().await;
        // Some of the calls are sent a second after others.
        assert!(begun.elapsed().as_secs() <= 13, "{at}: {:?}", begun.elapsed());
        let calls = sim.network.take_calls().len();
        sim.advance(60).await;
        assert_eq!(
            sim.network.take_calls().len(),
            0,
            "{at}: after {calls} calls and its end"
        );
        let statuses = sim.status("job");
        assert!(
            statuses.is_null() || statuses["conditions"].is_array(),
            "{at}: {statuses}"
        );
        sim.kill().await;
        sim.start();
        sim.advance(300).await;
        assert_eq!(sim.conditions("job"), "Created Running=False Succeeded", "{at}");
        assert_eq!(sim.status("job")["restartCount"], json!(null), "{at}");
        for pod in ["scheduler-0", "server-0", "worker-0", "worker-1"] {
            assert_made(&sim, &format!("pods job-{pod}"), 1, format_args!("{at}: {pod}"));
        }
        settle_and_check(&mut sim).await;
    }
}
