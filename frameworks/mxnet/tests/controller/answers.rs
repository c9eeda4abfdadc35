//! Answers that are no use: refusals, answers after the fact, and none at all.

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use training_job::TrainingJob;
use training_job_mxnet::MXJob;

use training_job_simulation::faults::CallFault::{Garbled, Lost, Refused, Unanswered};
use training_job_simulation::faults::PodFate::{Fails, Runs, Succeeds};
use training_job_simulation::simulation::{SMALL, Simulation, train, with_spec};

/// Ends well, the scheduler last.
fn ends_well(name: &str, _: u32) -> training_job_simulation::faults::PodFate {
    Succeeds(if name.contains("scheduler") { 15 } else { 10 })
}

fn ends(events: &[String], reason: &str) -> usize {
    events.iter().filter(|e| *e == reason).count()
}

/// Every call site that a job's life has, each with the fault three times in a row.
#[tokio::test(start_paused = true)]
async fn a_job_gets_over_every_fault_at_every_call() {
    let faults = [
        Refused(404, "NotFound"),
        Refused(409, "Conflict"),
        Refused(429, "TooManyRequests"),
        Refused(500, "InternalError"),
        Refused(503, "ServiceUnavailable"),
        Refused(504, "Timeout"),
        Garbled(500, "InternalError"),
        Garbled(504, "Timeout"),
        Lost,
        Unanswered,
    ];
    let calls = [
        ("list", "pods"),
        ("list", "mxjobs"),
        ("watch", "services"),
        ("create", "services"),
        ("create", "pods"),
        ("patch", "mxjobs/status"),
        ("create", "events"),
        ("delete", "pods"),
        ("delete", "services"),
    ];
    for fault in faults {
        for (verb, resource) in calls {
            let mut world = Simulation::without_operator(ends_well);
            world.network.fail_next(verb, resource, 3, fault.clone());
            world.start();
            let job = with_spec(
                train("job", &SMALL),
                json!({"runPolicy": {"cleanPodPolicy": "All"}}),
            );
            world.create(job).await;
            world.advance(400).await;
            let case = format!("{fault:?} at {verb} {resource}");
            let conditions = world.conditions("job");
            assert!(conditions.ends_with("Succeeded"), "{case}: {conditions}");
            assert!(
                world.pods_now().is_empty() && world.services_now().is_empty(),
                "{case}"
            );
            assert_eq!(world.status("job")["restartCount"], json!(null), "{case}");
            assert!(
                ends(&world.events(), "MXJobSucceeded") <= 1,
                "{case}: {:?}",
                world.events()
            );
            world.assert_no_violations();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_is_sent_once_though_the_status_is_refused() {
    let world = Simulation::new(ends_well);
    world.create(train("job", &SMALL)).await;
    world.advance(12).await;
    world
        .network
        .fail_next("patch", "mxjobs/status", 6, Refused(500, "InternalError"));
    world.advance(120).await;
    assert!(world.conditions("job").ends_with("Succeeded"));
    assert_eq!(ends(&world.events(), "MXJobSucceeded"), 1);
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_status_that_others_write_at_the_same_time_is_not_lost() {
    let world = Simulation::new(ends_well);
    world.create(train("job", &SMALL)).await;
    world
        .network
        .fail_next("patch", "mxjobs/status", 4, Refused(409, "Conflict"));
    for number in 0..20 {
        world
            .edit("job", json!({"metadata": {"labels": {"n": number.to_string()}}}))
            .await;
        world.advance(1).await;
    }
    world.advance(30).await;
    assert_eq!(world.conditions("job"), "Created Running=False Succeeded");
    assert_eq!(ends(&world.events(), "MXJobSucceeded"), 1);
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_quota_stops_a_job_without_a_storm_and_lets_it_on() {
    let world = Simulation::new(|_, _| Runs);
    let mut left = 3;
    world.network.add_rule(move |call| {
        if !call.is("create", "pods") || left == 0 {
            return call.is("create", "pods").then_some(Refused(403, "Forbidden"));
        }
        left -= 1;
        None
    });
    world
        .create(train("job", &[("Scheduler", 1), ("Worker", 200)]))
        .await;
    world.advance(600).await;
    assert_eq!(world.pods_now().len(), 3);
    let creates = world.network.count("create", "pods");
    assert!(creates < 12 * 33, "{creates} creates in ten minutes");
    assert_eq!(ends(&world.events(), "FailedCreatePod"), 1);
    world.network.heal();
    world.advance(400).await;
    assert_eq!(world.pods_now().len(), 201);
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_not_asked_for_every_pod() {
    let world = Simulation::new(ends_well);
    world.network.fail_next("create", "pods", 1_000, Lost);
    world
        .create(train("job", &[("Scheduler", 1), ("Worker", 200)]))
        .await;
    world.advance(40).await;
    let creates = world.network.count("create", "pods");
    assert!(creates <= 2 * 32, "{creates} creates under way");
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn one_job_that_cannot_go_on_does_not_stop_another() {
    let world = Simulation::new(ends_well);
    world
        .network
        .add_rule(|call| call.name.starts_with("stuck").then_some(Lost));
    world.create(train("stuck", &SMALL)).await;
    world.create(train("job", &SMALL)).await;
    world.advance(30).await;
    assert!(world.conditions("job").ends_with("Succeeded"));
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn the_deadline_is_kept_though_pods_cannot_be_made() {
    let world = Simulation::new(|_, _| Runs);
    world
        .network
        .fail_next("create", "pods", usize::MAX, Refused(403, "Forbidden"));
    let job = with_spec(
        train("job", &SMALL),
        json!({"runPolicy": {"activeDeadlineSeconds": 900}}),
    );
    world.create(job).await;
    world.advance(902).await;
    assert!(
        world.conditions("job").ends_with("Failed"),
        "{}",
        world.conditions("job")
    );
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_terminating_namespace_makes_no_storm() {
    let world = Simulation::new(|_, _| Runs);
    world
        .network
        .add_rule(|call| call.is("create", "").then_some(Refused(403, "Forbidden")));
    world.create(train("job", &SMALL)).await;
    world.advance(3_600).await;
    let calls = world.network.take_calls().len();
    assert!(calls < 300, "{calls} calls in an hour");
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_drops_part_of_the_status_makes_no_storm() {
    let world = Simulation::new(|_, _| Runs);
    let mut definition = serde_json::to_value(MXJob::definition()).unwrap();
    let known =
        definition.pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/status/properties");
    known
        .unwrap()
        .as_object_mut()
        .unwrap()
        .remove("recovery")
        .unwrap();
    let api: Api<CustomResourceDefinition> = Api::all(world.user.clone());
    let definition = serde_json::from_value(definition).unwrap();
    api.create(&PostParams::default(), &definition).await.unwrap();
    world.create(train("job", &SMALL)).await;
    world.advance(3_600).await;
    assert_eq!(world.conditions("job"), "Created Running");
    let writes = world.network.count("patch", "mxjobs/status");
    assert!(writes < 60, "{writes} writes in an hour");
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_not_served_for_a_while_makes_no_storm() {
    let world = Simulation::new(|_, _| Runs);
    world.create(train("job", &SMALL)).await;
    world.network.add_rule(|call| {
        call.is("patch", "mxjobs/status")
            .then_some(Refused(404, "NotFound"))
    });
    world.advance(3_600).await;
    let writes = world.network.count("patch", "mxjobs/status");
    assert!(writes < 30, "{writes} writes in an hour");
    world.network.heal();
    world.advance(400).await;
    assert_eq!(
        world.conditions("job"),
        "Created Running",
        "it is written once the server takes it"
    );
    world.assert_no_violations();
}

/// The garbage collector does so while a job is going of which the watch has not told yet.
#[tokio::test(start_paused = true)]
async fn what_is_deleted_as_soon_as_it_is_made_is_not_made_a_thousand_times() {
    let world = Simulation::new(|_, _| Runs);
    world.create(train("job", &SMALL)).await;
    world.advance(5).await;
    let before = world.network.count("create", "services");
    let services: Api<Service> = Api::default_namespaced(world.user.clone());
    for _ in 0..6_000 {
        let _ = services.delete("job-worker-0", &DeleteParams::default()).await;
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let made = world.network.count("create", "services") - before;
    assert!((5..20).contains(&made), "{made} times in a minute");
    world.advance(20).await;
    assert_eq!(world.services_now().len(), 4);
    // What is made in vain is what this test is about.
    assert!(world.monitor.violations().iter().all(|v| v.id == "I9"));
}

#[tokio::test(start_paused = true)]
async fn a_job_deleted_while_it_is_made_leaves_nothing() {
    for at in 0..8 {
        let world = Simulation::new(ends_well);
        let mut creates = 0;
        world.network.add_rule(move |call| {
            creates +=
                usize::from(matches!(call.resource.as_str(), "pods" | "services") && call.verb == "create");
            (creates > at && call.verb == "create").then_some(Lost)
        });
        world.create(train("job", &SMALL)).await;
        world.advance(1).await;
        world.delete("job").await;
        world.network.heal();
        world.advance(120).await;
        assert!(
            world.pods_now().is_empty() && world.services_now().is_empty(),
            "after {at} creates"
        );
        world.assert_no_violations();
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_others_delete_in_any_phase_is_made_again() {
    // Seconds after creation: pending, running, ended.
    for at in [0, 5, 11] {
        let world = Simulation::new(ends_well);
        let job = with_spec(
            train("job", &SMALL),
            json!({"runPolicy": {"restartScope": "Replica"}}),
        );
        world.create(job).await;
        world.advance(at).await;
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        world.delete_pod("job-worker-0").await;
        world.advance(60).await;
        assert!(
            world.conditions("job").ends_with("Succeeded"),
            "{at}: {}",
            world.conditions("job")
        );
        let made = world.network.count("create", "pods");
        assert_eq!(
            made,
            if at == 11 { 4 } else { 5 },
            "at {at}: a success is not run again"
        );
        world.assert_no_violations();
    }
}

#[tokio::test(start_paused = true)]
async fn restarts_are_counted_once_whatever_answer_is_lost() {
    for fault in [Unanswered, Lost, Garbled(500, "InternalError")] {
        let world = Simulation::new(|name, attempt| match attempt {
            0 if name.contains("worker-1") => Fails(137, 5),
            0 => Runs,
            _ => ends_well(name, attempt),
        });
        world.create(train("job", &SMALL)).await;
        world.advance(5).await;
        world
            .network
            .fail_next("patch", "mxjobs/status", 1, fault.clone());
        world.network.fail_next("delete", "pods", 2, fault.clone());
        world.network.fail_next("create", "pods", 2, fault.clone());
        world.advance(300).await;
        assert!(world.conditions("job").ends_with("Succeeded"), "{fault:?}");
        assert_eq!(world.status("job")["restartCount"], 1, "{fault:?}");
        world.assert_no_violations();
    }
}
