//! Calls that are denied until somebody mends what is wrong.

use serde_json::json;
use training_job_simulation::fault::Fault::Refused;
use training_job_simulation::kubelet::Fate::{Runs, Succeeds};
use training_job_simulation::world::{SMALL, World, train, with};

use crate::stage::{edit, everywhere, policy, rest, success, told, worker};

#[test]
fn b11_its_token_is_not_taken_once() {
    everywhere(&success(), |_| true, &[Refused(401, "Unauthorized")]);
}

/// One right of the operator's is missing for an hour, while a job is to be made and another to be cleaned up.
/// The job has an event, once, and no condition: nothing is wrong with it.
#[tokio::test(start_paused = true)]
async fn b12_a_right_is_taken_away_and_given_back() {
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
        let mut world = World::new(|name, _| {
            if name.starts_with("old") {
                Succeeds(60)
            } else {
                Runs
            }
        });
        let clean = json!({"runPolicy": {"cleanPodPolicy": "All"}});
        world.create(with(train("old", &SMALL), clean)).await;
        world.pass(30).await;
        world
            .network
            .fault(verb, resource, usize::MAX, Refused(403, "Forbidden"));
        if verb == "list" || verb == "watch" {
            world.cluster.compact();
            world.cluster.cut_watches(None);
        }
        world.network.take();
        world.create(train("job", &SMALL)).await;
        world.pass(3_600).await;
        let case = format!("{verb} {resource}");
        let tries = world.network.count(verb, resource);
        assert!((1..=400).contains(&tries), "{case}: {tries} tries in an hour");
        let failures = world.events().iter().filter(|e| e.starts_with("Failed")).count();
        assert!(failures <= 2, "{case}: {:?}", world.events());
        world.network.heal();
        world.pass(400).await;
        rest(&mut world).await;
        assert_eq!(world.conditions("job"), "Created Running", "{case}");
        assert!(world.conditions("old").ends_with("Succeeded"), "{case}");
    }
}

/// Of one kind nothing is known to the server for a while; its pods run on.
#[tokio::test(start_paused = true)]
async fn b14_the_kind_is_not_served_for_a_while() {
    let mut world = World::new(|_, _| Succeeds(300));
    world.create(train("job", &SMALL)).await;
    world.pass(10).await;
    world.network.rule(|call| {
        call.resource
            .starts_with("mxjobs")
            .then_some(Refused(404, "NotFound"))
    });
    world.cluster.cut_watches(Some("mxjobs"));
    world.network.take();
    world.pass(1_200).await;
    let calls = world.network.take();
    assert!(calls.len() < 120, "{} calls in twenty minutes", calls.len());
    assert!(
        calls.iter().all(|c| c.verb != "delete" && c.verb != "create"),
        "{calls:?}"
    );
    assert_eq!(world.pods_now().len(), 4);
    rest(&mut world).await;
    assert!(world.conditions("job").ends_with("Succeeded"));
}

/// One pod of four is refused for good, whatever the reason. The others are made, the job has one event, and it goes on
/// when its spec is mended; under a deadline it ends all the same.
async fn one_pod_is_refused(fault: training_job_simulation::fault::Fault) {
    let mut world = World::new(|_, _| Runs);
    let created = |call: &training_job_simulation::call::Call| call.is("create", "pods");
    let mut number = 0;
    let refused = fault.clone();
    // The fourth is worker-1; after it all that are tried again.
    world.network.rule(move |call| {
        number += u32::from(created(call));
        (created(call) && number >= 4).then(|| refused.clone())
    });
    world.create(train("job", &SMALL)).await;
    world.pass(3_600).await;
    assert_eq!(world.pods_now().len(), 3, "{fault:?}");
    assert_eq!(told(&world, "FailedCreatePod"), 1, "{fault:?}");
    let tries = world.network.count("create", "pods") - 3;
    assert!((5..40).contains(&tries), "{fault:?}: {tries} tries in an hour");
    world.network.heal();
    edit(
        &world,
        "mxjobs",
        "job",
        worker(json!({"template": {"metadata": {"labels": {"a": "b"}}}})),
    )
    .await;
    world.pass(10).await;
    assert_eq!(world.pods_now().len(), 4, "{fault:?}: an edit is tried at once");
    rest(&mut world).await;

    let mut world = World::new(|_, _| Runs);
    world.network.fault("create", "pods", usize::MAX, fault.clone());
    world.create(train("job", &SMALL)).await;
    edit(
        &world,
        "mxjobs",
        "job",
        policy(json!({"activeDeadlineSeconds": 900})),
    )
    .await;
    world.pass(905).await;
    assert!(world.conditions("job").ends_with("Failed"), "{fault:?}");
    rest(&mut world).await;
}

#[tokio::test(start_paused = true)]
async fn b15_an_object_is_too_large() {
    one_pod_is_refused(Refused(413, "RequestEntityTooLarge")).await;
}

/// Of a hundred pods the first is refused, for what is wrong with it and not with the others.
#[tokio::test(start_paused = true)]
async fn b16_a_refused_object_keeps_no_other_waiting() {
    let mut world = World::new(|_, _| Runs);
    world.network.fault("create", "pods", 1, Refused(422, "Invalid"));
    world
        .create(train("job", &[("Scheduler", 1), ("Worker", 100)]))
        .await;
    while told(&world, "FailedCreatePod") == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    assert_eq!(
        world.pods_now().len(),
        100,
        "all others are made in the same pass"
    );
    world.pass(10).await;
    rest(&mut world).await;
}

#[tokio::test(start_paused = true)]
async fn b16_an_object_is_invalid() {
    one_pod_is_refused(Refused(422, "Invalid")).await;
}
