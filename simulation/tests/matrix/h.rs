//! What admission lets in. The refusals are those of a real API server; that they come about is tested there.

use serde_json::json;
use training_job_simulation::fault::Fault::Refused;
use training_job_simulation::kubelet::Fate::{Runs, Succeeds};
use training_job_simulation::world::{SMALL, World, train, with};

use crate::stage::{made, policy, rest, told};

/// Of pods or services only so many are let in, from none to all but one, then all.
#[tokio::test(start_paused = true)]
async fn h1_a_quota_lets_in_some_of_many() {
    for quota in [0, 1, 5, 11] {
        let mut world = World::new(|_, _| Succeeds(500));
        let mut left = quota;
        world.network.rule(move |call| {
            if !call.is("create", "pods") {
                return None;
            }
            let over = left == 0;
            left -= usize::from(!over);
            over.then_some(Refused(403, "Forbidden"))
        });
        world
            .create(train("job", &[("Scheduler", 1), ("Server", 1), ("Worker", 10)]))
            .await;
        world.create(train("other", &SMALL)).await;
        world.pass(300).await;
        assert_eq!(world.pods_now().len(), quota);
        assert_eq!(world.network.count("delete", ""), 0, "what is there is kept");
        assert_eq!(told(&world, "FailedCreatePod"), 2, "each job says so once");
        let creates = world.network.count("create", "pods");
        // Each of some twelve passes of each job has one call in vain, or two that were under way together.
        assert!(
            (quota + 10..quota + 2 * 14 * 12).contains(&creates),
            "{creates} creates in five minutes"
        );
        // The scheduler decides, and is the first.
        assert_eq!(world.conditions("job").contains("Running"), quota > 0);
        rest(&mut world).await;
        assert!(world.conditions("job").ends_with("Succeeded"));
        assert!(world.monitor.counts().values().all(|(made, _)| *made == 1));
    }
}

/// A policy denies the pods until it is changed; jobs with a deadline end at it.
#[tokio::test(start_paused = true)]
async fn h2_policy_denies_pods() {
    let mut world = World::new(|_, _| Runs);
    world
        .network
        .fault("create", "pods", usize::MAX, Refused(403, "Forbidden"));
    world.create(train("job", &SMALL)).await;
    let deadline = json!({"runPolicy": {"activeDeadlineSeconds": 600}});
    world.create(with(train("limited", &SMALL), deadline)).await;
    world.pass(3_600).await;
    assert!(world.conditions("limited").ends_with("Failed"));
    assert_eq!(told(&world, "FailedCreatePod"), 2);
    let creates = world.network.count("create", "pods");
    assert!((10..4 * 40).contains(&creates), "{creates} creates in an hour");
    rest(&mut world).await;
    assert_eq!(world.conditions("job"), "Created Running");
}

/// A webhook denies with codes of its own choice. One of them is for one pod, others for all.
#[tokio::test(start_paused = true)]
async fn h3_a_webhook_denies_with_any_code() {
    for code in [400, 402, 403, 418, 451, 499] {
        let mut world = World::new(|_, _| Runs);
        world
            .network
            .fault("create", "pods", usize::MAX, Refused(code, "denied the request"));
        world.create(train("job", &SMALL)).await;
        world.pass(1_800).await;
        assert_eq!(told(&world, "FailedCreatePod"), 1, "{code}");
        let creates = world.network.count("create", "pods");
        assert!(
            (8..4 * 30).contains(&creates),
            "{code}: {creates} creates in half an hour"
        );
        rest(&mut world).await;
        assert_eq!(world.conditions("job"), "Created Running", "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn h4_a_quota_lets_in_some_services() {
    let mut world = World::new(|_, _| Runs);
    let mut left = 2;
    world.network.rule(move |call| {
        if !call.is("create", "services") {
            return None;
        }
        let over = left == 0;
        left -= usize::from(!over);
        over.then_some(Refused(403, "Forbidden"))
    });
    world.create(train("job", &SMALL)).await;
    world.pass(300).await;
    assert_eq!(world.services_now().len(), 2);
    assert_eq!(told(&world, "FailedCreateService"), 1);
    rest(&mut world).await;
    assert_eq!(made(&world, "services job-worker-1"), (1, 0));
    assert_eq!(world.conditions("job"), "Created Running");
}

/// What a pod names is not there: it is refused. (A claim that is missing keeps a pod waiting: that is row E6.)
#[tokio::test(start_paused = true)]
async fn h5_what_a_pod_names_is_missing() {
    let mut world = World::new(|_, _| Runs);
    world
        .network
        .fault("create", "pods", usize::MAX, Refused(403, "Forbidden"));
    world.create(train("job", &SMALL)).await;
    world.pass(60).await;
    let events = world.cluster.list("events", None);
    let told: Vec<_> = events
        .iter()
        .filter(|e| e.value()["reason"] == "FailedCreatePod")
        .collect();
    assert_eq!(told.len(), 1);
    let message = told[0].value()["message"].as_str().unwrap();
    assert!(
        message.contains("job-scheduler-0: injected: Forbidden"),
        "{message}"
    );
    // It can be stopped all the same.
    crate::stage::edit(&world, "mxjobs", "job", policy(json!({"suspend": true}))).await;
    world.pass(5).await;
    assert_eq!(world.conditions("job"), "Created Suspended");
    rest(&mut world).await;
}
