//! Admission and quota. The errors are those of a real API server. Other tests provoke them there.

use serde_json::json;
use training_job_simulation::faults::CallFault::{Refused, Slow};
use training_job_simulation::faults::PodFate::{Runs, Succeeds, SucceedsWith};
use training_job_simulation::scenario::users::set_quota;
use training_job_simulation::simulation::{SMALL, Simulation, train, with_spec};

use crate::harness::{created_and_deleted, event_count, policy, settle_and_check};

/// A quota allows a limited number of pods, from none to all but one, and later all.
#[tokio::test(start_paused = true)]
async fn a_quota_lets_in_some_of_many() {
    for quota in [0, 1, 5, 11] {
        let mut sim = Simulation::new(|_, _| Succeeds(500));
        let mut left = quota;
        sim.network.add_rule(move |call| {
            if !call.is("create", "pods") {
                return None;
            }
            let over = left == 0;
            left -= usize::from(!over);
            over.then_some(Refused(403, "Forbidden"))
        });
        sim.create(train("job", &[("Scheduler", 1), ("Server", 1), ("Worker", 10)]))
            .await;
        sim.create(train("other", &SMALL)).await;
        sim.advance(300).await;
        assert_eq!(sim.pods_now().len(), quota);
        assert_eq!(sim.network.count("delete", ""), 0, "what is there is kept");
        assert_eq!(event_count(&sim, "FailedCreatePod"), 2, "each job says so once");
        let creates = sim.network.count("create", "pods");
        // Each of about twelve passes of each job has one failed call, or two that were in flight together.
        assert!(
            (quota + 10..quota + 2 * 14 * 12).contains(&creates),
            "{creates} creates in five minutes"
        );
        // The scheduler decides the outcome, and is created first.
        assert_eq!(sim.conditions("job").contains("Running"), quota > 0);
        settle_and_check(&mut sim).await;
        assert!(sim.conditions("job").ends_with("Succeeded"));
        assert!(sim.monitor.child_counts().values().all(|(made, _)| *made == 1));
    }
}

/// Many jobs share a quota that is far smaller than what they need together, and the pods of each wait for the others. Jobs
/// that hold a part must not keep each other waiting.
#[tokio::test(start_paused = true)]
async fn every_job_ends_under_a_quota_for_few_of_them() {
    const JOBS: usize = 40;
    fn pods_of(job: &str) -> usize {
        let number: usize = job.split('-').nth(1).unwrap().parse().unwrap();
        3 + number % 3
    }
    // The jobs are created in groups of this many, one group in each second.
    for (quota, group) in [(5, 40), (7, 40), (7, 1), (12, 8), (23, 20)] {
        let mut sim = Simulation::new(|pod, _| SucceedsWith(pods_of(pod), 2));
        sim.network.allow_calls(100_000);
        // The calls of different jobs overtake each other.
        let mut number = 0;
        sim.network.add_rule(move |call| {
            number += 1;
            (call.verb != "watch").then_some(Slow(number * 37 % 100, 10))
        });
        set_quota(&sim.cluster, Some(quota)).await;
        let names: Vec<_> = (0..JOBS).map(|number| format!("job-{number}")).collect();
        for group in names.chunks(group) {
            for name in group {
                let workers = i32::try_from(pods_of(name) - 2).unwrap();
                sim.create(train(
                    name,
                    &[("Scheduler", 1), ("Server", 1), ("Worker", workers)],
                ))
                .await;
            }
            sim.advance(1).await;
        }
        settle_and_check(&mut sim).await;
        for name in &names {
            let conditions = sim.conditions(name);
            assert!(
                conditions.ends_with("Succeeded"),
                "quota {quota}: {name} is {conditions}"
            );
        }
    }
}

/// A policy denies the pods until it is changed. Jobs with a deadline end at the deadline.
#[tokio::test(start_paused = true)]
async fn policy_denies_pods() {
    let mut sim = Simulation::new(|_, _| Runs);
    sim.network
        .fail_next("create", "pods", usize::MAX, Refused(403, "Forbidden"));
    sim.create(train("job", &SMALL)).await;
    let deadline = json!({"runPolicy": {"activeDeadlineSeconds": 600}});
    sim.create(with_spec(train("limited", &SMALL), deadline)).await;
    sim.advance(3_600).await;
    assert!(sim.conditions("limited").ends_with("Failed"));
    assert_eq!(event_count(&sim, "FailedCreatePod"), 2);
    let creates = sim.network.count("create", "pods");
    assert!((10..4 * 40).contains(&creates), "{creates} creates in an hour");
    settle_and_check(&mut sim).await;
    assert_eq!(sim.conditions("job"), "Created Running");
}

/// A webhook denies pods with any status code, one pod or all.
#[tokio::test(start_paused = true)]
async fn a_webhook_denies_with_any_code() {
    for code in [400, 402, 403, 418, 451, 499] {
        let mut sim = Simulation::new(|_, _| Runs);
        sim.network
            .fail_next("create", "pods", usize::MAX, Refused(code, "denied the request"));
        sim.create(train("job", &SMALL)).await;
        sim.advance(1_800).await;
        assert_eq!(event_count(&sim, "FailedCreatePod"), 1, "{code}");
        let creates = sim.network.count("create", "pods");
        assert!(
            (8..4 * 30).contains(&creates),
            "{code}: {creates} creates in half an hour"
        );
        settle_and_check(&mut sim).await;
        assert_eq!(sim.conditions("job"), "Created Running", "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_quota_lets_in_some_services() {
    let mut sim = Simulation::new(|_, _| Runs);
    let mut left = 2;
    sim.network.add_rule(move |call| {
        if !call.is("create", "services") {
            return None;
        }
        let over = left == 0;
        left -= usize::from(!over);
        over.then_some(Refused(403, "Forbidden"))
    });
    sim.create(train("job", &SMALL)).await;
    sim.advance(300).await;
    assert_eq!(sim.services_now().len(), 2);
    assert_eq!(event_count(&sim, "FailedCreateService"), 1);
    settle_and_check(&mut sim).await;
    assert_eq!(created_and_deleted(&sim, "services job-worker-1"), (1, 0));
    assert_eq!(sim.conditions("job"), "Created Running");
}

/// A pod refers to an object that does not exist, and is refused. (With a missing claim it stays pending: row E6.)
#[tokio::test(start_paused = true)]
async fn objects_that_a_pod_refers_to_are_missing() {
    let mut sim = Simulation::new(|_, _| Runs);
    sim.network
        .fail_next("create", "pods", usize::MAX, Refused(403, "Forbidden"));
    sim.create(train("job", &SMALL)).await;
    sim.advance(60).await;
    let events = sim.cluster.list("events", None);
    let told: Vec<_> = events
        .iter()
        .filter(|e| e.value()["reason"] == "FailedCreatePod")
        .collect();
    assert_eq!(told.len(), 1);
    let message = told[0].value()["message"].as_str().unwrap();
    assert!(
        message.contains("pods job-scheduler-0, job-server-0") && message.contains("injected: Forbidden"),
        "{message}"
    );
    // The job can still be suspended.
    crate::harness::edit(&sim, "mxjobs", "job", policy(json!({"suspend": true}))).await;
    sim.advance(5).await;
    assert_eq!(sim.conditions("job"), "Created Suspended");
    settle_and_check(&mut sim).await;
}
