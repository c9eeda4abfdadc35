//! Calls that are denied until a user fixes the cause.

use serde_json::json;
use training_job_simulation::faults::CallFault::Refused;
use training_job_simulation::faults::PodFate::{Runs, Succeeds};
use training_job_simulation::simulation::{SMALL, Simulation, train, with_spec};

use crate::harness::{edit, event_count, policy, settle_and_check, worker};

/// One of the operator's permissions is missing for an hour, while one job is to be created and another to be cleaned
/// up. The job gets one event, and no condition, because the job itself is correct.
#[tokio::test(start_paused = true)]
async fn a_right_is_taken_away_and_given_back() {
    let rights = [
        ("create", "pods"),
        ("create", "services"),
        ("delete", "pods"),
        ("delete", "services"),
        ("patch", "mxjobs/status"),
        ("create", "events"),
        ("list", "pods"),
        ("watch", "mxjobs"),
        ("list", ""),
    ];
    for (verb, resource) in rights {
        let mut sim = Simulation::new(|name, _| {
            if name.starts_with("old") {
                Succeeds(60)
            } else {
                Runs
            }
        });
        let clean = json!({"runPolicy": {"cleanPodPolicy": "All"}});
        sim.create(with_spec(train("old", &SMALL), clean)).await;
        sim.advance(30).await;
        sim.network
            .fail_next(verb, resource, usize::MAX, Refused(403, "Forbidden"));
        if verb == "list" || verb == "watch" {
            sim.cluster.compact();
            sim.cluster.cut_watches(None);
        }
        sim.network.take_calls();
        sim.create(train("job", &SMALL)).await;
        sim.advance(3_600).await;
        let case = format!("{verb} {resource}");
        let tries = sim.network.count(verb, resource);
        assert!((1..=400).contains(&tries), "{case}: {tries} tries in an hour");
        let failures = sim.events().iter().filter(|e| e.starts_with("Failed")).count();
        assert!(failures <= 2, "{case}: {:?}", sim.events());
        sim.network.heal();
        sim.advance(400).await;
        settle_and_check(&mut sim).await;
        assert_eq!(sim.conditions("job"), "Created Running", "{case}");
        assert!(sim.conditions("old").ends_with("Succeeded"), "{case}");
    }
}

/// The API server does not serve the kind for a while. The job's pods keep running.
#[tokio::test(start_paused = true)]
async fn the_kind_is_not_served_for_a_while() {
    let mut sim = Simulation::new(|_, _| Succeeds(300));
    sim.create(train("job", &SMALL)).await;
    sim.advance(10).await;
    sim.network.add_rule(|call| {
        call.resource
            .starts_with("mxjobs")
            .then_some(Refused(404, "NotFound"))
    });
    sim.cluster.cut_watches(Some("mxjobs"));
    sim.network.take_calls();
    sim.advance(1_200).await;
    let calls = sim.network.take_calls();
    assert!(calls.len() < 120, "{} calls in twenty minutes", calls.len());
    assert!(
        calls.iter().all(|c| c.verb != "delete" && c.verb != "create"),
        "{calls:?}"
    );
    assert_eq!(sim.pods_now().len(), 4);
    settle_and_check(&mut sim).await;
    assert!(sim.conditions("job").ends_with("Succeeded"));
}

/// A proxy between the operator and the API server responds with 404 to lists of pods. If the operator treated that
/// as a cluster without pods, it would restart running jobs.
#[tokio::test(start_paused = true)]
async fn pods_that_are_not_found_are_not_taken_for_gone() {
    let mut sim = Simulation::new(|_, _| Runs);
    sim.create(train("job", &SMALL)).await;
    sim.advance(30).await;
    sim.kill().await;
    let is_list = |call: &training_job_simulation::call::Call| call.is("list", "pods");
    sim.network
        .add_rule(move |call| is_list(call).then_some(Refused(404, "NotFound")));
    sim.network.take_calls();
    sim.start();
    sim.advance(600).await;
    let calls = sim.network.take_calls();
    assert!(calls.iter().all(|call| !call.writes()), "{calls:?}");
    sim.network.heal();
    sim.advance(60).await;
    settle_and_check(&mut sim).await;
    assert_eq!(sim.conditions("job"), "Created Running");
    assert!(
        sim.pods_now().iter().all(|pod| !pod.contains('+')),
        "{:?}",
        sim.pods_now()
    );
}

/// One pod of four is refused permanently, for any reason. The others are created, the job has one event, and it
/// continues when its spec is fixed. With a deadline, it still ends at the deadline.
async fn one_pod_is_refused(fault: training_job_simulation::faults::CallFault) {
    let mut sim = Simulation::new(|_, _| Runs);
    let created = |call: &training_job_simulation::call::Call| call.is("create", "pods");
    let mut number = 0;
    let refused = fault.clone();
    // The fourth is worker-1. Later creations are retries.
    sim.network.add_rule(move |call| {
        number += u32::from(created(call));
        (created(call) && number >= 4).then(|| refused.clone())
    });
    sim.create(train("job", &SMALL)).await;
    sim.advance(3_600).await;
    assert_eq!(sim.pods_now().len(), 3, "{fault:?}");
    assert_eq!(event_count(&sim, "FailedCreatePod"), 1, "{fault:?}");
    let tries = sim.network.count("create", "pods") - 3;
    assert!((5..40).contains(&tries), "{fault:?}: {tries} tries in an hour");
    sim.network.heal();
    edit(
        &sim,
        "mxjobs",
        "job",
        worker(json!({"template": {"metadata": {"labels": {"a": "b"}}}})),
    )
    .await;
    sim.advance(10).await;
    assert_eq!(sim.pods_now().len(), 4, "{fault:?}: an edit is tried at once");
    settle_and_check(&mut sim).await;

    let mut sim = Simulation::new(|_, _| Runs);
    sim.network.fail_next("create", "pods", usize::MAX, fault.clone());
    sim.create(train("job", &SMALL)).await;
    edit(
        &sim,
        "mxjobs",
        "job",
        policy(json!({"activeDeadlineSeconds": 900})),
    )
    .await;
    sim.advance(905).await;
    assert!(sim.conditions("job").ends_with("Failed"), "{fault:?}");
    settle_and_check(&mut sim).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_is_too_large() {
    one_pod_is_refused(Refused(413, "RequestEntityTooLarge")).await;
}

/// The first of a hundred pods is refused, for a reason that does not affect the others.
#[tokio::test(start_paused = true)]
async fn a_refused_object_keeps_no_other_waiting() {
    let mut sim = Simulation::new(|_, _| Runs);
    sim.network
        .fail_next("create", "pods", 1, Refused(422, "Invalid"));
    sim.create(train("job", &[("Scheduler", 1), ("Worker", 100)]))
        .await;
    while event_count(&sim, "FailedCreatePod") == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    assert_eq!(sim.pods_now().len(), 100, "all others are made in the same pass");
    sim.advance(10).await;
    settle_and_check(&mut sim).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_is_invalid() {
    one_pod_is_refused(Refused(422, "Invalid")).await;
}
