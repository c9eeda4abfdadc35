//! The number of calls that a job costs.

use serde_json::json;
use training_job_simulation::call::Call;
use training_job_simulation::faults::PodFate::{NodeLost, Runs, Succeeds};
use training_job_simulation::simulation::with_spec;

use crate::toys::{simulate, toy_job};

struct Cost {
    objects: usize,
    statuses: usize,
    events: usize,
    reads: usize,
}

fn cost(calls: &[Call]) -> Cost {
    let count = |wanted: &dyn Fn(&Call) -> bool| calls.iter().filter(|c| wanted(c)).count();
    Cost {
        objects: count(&|c| c.writes() && matches!(c.resource.as_str(), "pods" | "services")),
        statuses: count(&|c| c.resource == "toyjobs/status"),
        events: count(&|c| c.resource == "events"),
        reads: count(&|c| c.verb == "get"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_of_n_replicas_costs_2n_creates_and_a_few_calls() {
    for workers in [1, 10, 100] {
        let sim = simulate(|_, _| Succeeds(10));
        let job = toy_job("job", &[("Scheduler", 1), ("Server", 1), ("Worker", workers)]);
        sim.create(job).await;
        sim.advance(60).await;
        assert!(sim.conditions("job").ends_with("Succeeded"));
        let cost = cost(&sim.network.take_calls());
        let replicas = usize::try_from(workers).unwrap() + 2;
        assert_eq!(cost.objects, 2 * replicas, "{workers}");
        // Created (written with Running if all run within a second), Running, Succeeded.
        assert!((2..=3).contains(&cost.statuses), "{workers}: {}", cost.statuses);
        // One event each for services, pods, and the success.
        assert_eq!(cost.events, 3, "{workers}");
        assert_eq!(cost.reads, 0, "{workers}");
        sim.assert_no_violations();
    }
}

/// Returns all calls except the renewal of watches.
fn work(calls: Vec<Call>) -> Vec<Call> {
    calls.into_iter().filter(|c| c.verb != "watch").collect()
}

#[tokio::test(start_paused = true)]
async fn a_quiet_cluster_costs_nothing_but_watches() {
    let sim = simulate(|name, _| {
        if name.starts_with("runs") {
            Runs
        } else {
            Succeeds(5)
        }
    });
    let roles = [("Scheduler", 1), ("Worker", 2)];
    for name in ["runs", "ends"] {
        sim.create(toy_job(name, &roles)).await;
    }
    sim.advance(60).await;
    sim.network.take_calls();
    sim.advance(3_600).await;
    let calls = sim.network.take_calls();
    assert!(calls.len() <= 4 * 31, "{} renewals", calls.len());
    assert_eq!(work(calls), []);
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn terminating_pods_are_not_deleted_again() {
    let sim = simulate(|_, _| NodeLost(100_000, 60));
    // With a common restart, the other pods would already be terminating.
    let alone = json!({"runPolicy": {"restartScope": "Replica"}});
    let job = toy_job("job", &[("Scheduler", 1), ("Worker", 3)]);
    sim.create(with_spec(job, alone)).await;
    sim.advance(10).await;
    sim.delete_pod("job-worker-0").await;
    sim.advance(1).await;
    sim.network.take_calls();
    sim.edit("job", json!({"spec": {"runPolicy": {"suspend": true}}}))
        .await;
    sim.advance(10).await;
    assert_eq!(sim.network.count("delete", "pods"), 3);
    assert_eq!(sim.pods_now().iter().filter(|p| p.ends_with('!')).count(), 4);
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_new_operator_changes_nothing_that_is_in_order() {
    let mut sim = simulate(|_, _| Runs);
    for number in 0..100 {
        let job = toy_job(&format!("job-{number}"), &[("Scheduler", 1), ("Worker", 1)]);
        sim.create(job).await;
    }
    sim.advance(60).await;
    sim.kill().await;
    sim.network.take_calls();
    sim.start();
    sim.advance(600).await;
    let calls = work(sim.network.take_calls());
    assert_eq!(calls.len(), 4, "one list of each kind: {calls:?}");
    sim.assert_no_violations();
}
