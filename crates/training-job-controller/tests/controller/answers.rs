//! Answers that are no use: refusals, answers after the fact, and none at all.

use k8s_openapi::api::core::v1::{ResourceQuota, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use training_job::TrainingJob;
use training_job_testbed::ToyJob;

use training_job_simulation::faults::CallFault::{Garbled, Lost, Refused, Unanswered};
use training_job_simulation::faults::PodFate::{Fails, Runs, Succeeds};
use training_job_simulation::simulation::{SMALL, Simulation, with_spec};

use crate::toys::{simulate, toy_job, without_operator};

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
        ("list", "toyjobs"),
        ("watch", "services"),
        ("create", "services"),
        ("create", "pods"),
        ("patch", "toyjobs/status"),
        ("create", "events"),
        ("delete", "pods"),
        ("delete", "services"),
    ];
    for fault in faults {
        for (verb, resource) in calls {
            let mut sim = without_operator(ends_well);
            sim.network.fail_next(verb, resource, 3, fault.clone());
            sim.start();
            let job = with_spec(
                toy_job("job", &SMALL),
                json!({"runPolicy": {"cleanPodPolicy": "All"}}),
            );
            sim.create(job).await;
            sim.advance(400).await;
            let case = format!("{fault:?} at {verb} {resource}");
            let conditions = sim.conditions("job");
            assert!(conditions.ends_with("Succeeded"), "{case}: {conditions}");
            assert!(
                sim.pods_now().is_empty() && sim.services_now().is_empty(),
                "{case}"
            );
            assert_eq!(sim.status("job")["restartCount"], json!(null), "{case}");
            assert!(
                ends(&sim.events(), "ToyJobSucceeded") <= 1,
                "{case}: {:?}",
                sim.events()
            );
            sim.assert_no_violations();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_is_sent_once_though_the_status_is_refused() {
    let sim = simulate(ends_well);
    sim.create(toy_job("job", &SMALL)).await;
    sim.advance(12).await;
    sim.network
        .fail_next("patch", "toyjobs/status", 6, Refused(500, "InternalError"));
    sim.advance(120).await;
    assert!(sim.conditions("job").ends_with("Succeeded"));
    assert_eq!(ends(&sim.events(), "ToyJobSucceeded"), 1);
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_status_that_others_write_at_the_same_time_is_not_lost() {
    let sim = simulate(ends_well);
    sim.create(toy_job("job", &SMALL)).await;
    sim.network
        .fail_next("patch", "toyjobs/status", 4, Refused(409, "Conflict"));
    for number in 0..20 {
        sim.edit("job", json!({"metadata": {"labels": {"n": number.to_string()}}}))
            .await;
        sim.advance(1).await;
    }
    sim.advance(30).await;
    assert_eq!(sim.conditions("job"), "Created Running=False Succeeded");
    assert_eq!(ends(&sim.events(), "ToyJobSucceeded"), 1);
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_quota_stops_a_job_without_a_storm_and_lets_it_on() {
    let sim = simulate(|_, _| Runs);
    let mut left = 3;
    sim.network.add_rule(move |call| {
        if !call.is("create", "pods") || left == 0 {
            return call.is("create", "pods").then_some(Refused(403, "Forbidden"));
        }
        left -= 1;
        None
    });
    sim.create(toy_job("job", &[("Scheduler", 1), ("Worker", 200)]))
        .await;
    sim.advance(600).await;
    assert_eq!(sim.pods_now().len(), 3);
    let creates = sim.network.count("create", "pods");
    assert!(creates < 12 * 33, "{creates} creates in ten minutes");
    assert_eq!(ends(&sim.events(), "FailedCreatePod"), 1);
    sim.network.heal();
    sim.advance(400).await;
    assert_eq!(sim.pods_now().len(), 201);
    sim.assert_no_violations();
}

/// A namespace with a quota of `pods`, and jobs of one worker that ends after ten seconds.
async fn with_quota(pods: usize, jobs: usize) -> Simulation {
    let sim = simulate(|_, _| Succeeds(10));
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": pods.to_string()}}});
    let quotas: Api<ResourceQuota> = Api::default_namespaced(sim.user.clone());
    quotas
        .create(&PostParams::default(), &serde_json::from_value(quota).unwrap())
        .await
        .unwrap();
    for job in 0..jobs {
        sim.create(toy_job(&format!("job-{job}"), &[("Worker", 1)])).await;
        sim.advance(1).await;
    }
    sim
}

/// The end of a pod lets the job begin that waits longest, whatever its backoff is by then.
#[tokio::test(start_paused = true)]
async fn jobs_that_a_quota_refuses_begin_in_order_when_others_end() {
    let sim = with_quota(1, 30).await;
    // One second from the end of a pod to the next pod, which takes a second to start and ten to end.
    sim.advance(30 * 13).await;
    let ended = |job: usize| sim.conditions(&format!("job-{job}")).ends_with("Succeeded");
    assert!((0..30).all(ended), "{:?}", sim.pods_now());
    let creates = sim.network.count("create", "pods");
    assert!(creates < 30 * 8, "{creates} creates of 30 pods");
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_job_with_a_part_of_its_pods_reports_since_when_it_waits() {
    let sim = with_quota(2, 0).await;
    sim.create(toy_job("job", &SMALL)).await;
    sim.advance(5).await;
    let status = sim.status("job");
    assert_eq!(status["waitingReason"], "FailedCreatePod");
    let since = status["waitingSince"].clone();
    assert!(since.is_string(), "{status}");
    sim.advance(3).await;
    assert_eq!(sim.status("job")["waitingSince"], since);
    assert_eq!(ends(&sim.events(), "FailedCreatePod"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_service_is_refused_reports_it_and_gets_no_pods() {
    let sim = simulate(|_, _| Runs);
    sim.create(toy_job("other", &SMALL)).await;
    sim.advance(5).await;
    let full = "failed to allocate a serviceIP: range is full";
    sim.network
        .fail_next("create", "services", usize::MAX, Refused(500, full));
    sim.create(toy_job("job", &SMALL)).await;
    sim.advance(300).await;
    assert_eq!(sim.status("job")["waitingReason"], "FailedCreateService");
    assert_eq!(sim.pods_now().len(), 4, "{:?}", sim.pods_now());
    sim.network.heal();
    sim.delete("other").await;
    sim.advance(2).await;
    let pods = sim.pods_now();
    assert_eq!(
        pods.iter().filter(|pod| pod.starts_with("job-")).count(),
        4,
        "{pods:?}"
    );
    sim.advance(3).await;
    assert_eq!(sim.status("job")["waitingReason"], json!(null));
    sim.assert_no_violations();
}

/// A pod that a finished job cannot delete keeps its devices.
#[tokio::test(start_paused = true)]
async fn a_finished_job_reports_that_its_pods_cannot_be_deleted() {
    let sim = simulate(ends_well);
    sim.network
        .fail_next("delete", "pods", usize::MAX, Refused(403, "Forbidden"));
    let all = json!({"runPolicy": {"cleanPodPolicy": "All"}});
    sim.create(with_spec(toy_job("job", &SMALL), all)).await;
    sim.advance(120).await;
    assert!(
        sim.conditions("job").ends_with("Succeeded"),
        "{}",
        sim.conditions("job")
    );
    assert_eq!(sim.status("job")["waitingReason"], "FailedDeletePod");
    assert_eq!(ends(&sim.events(), "FailedDeletePod"), 1);
    sim.network.heal();
    sim.advance(400).await;
    assert_eq!(sim.pods_now(), [""; 0]);
    assert_eq!(sim.status("job")["waitingReason"], json!(null));
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_respond_gets_no_call_for_each_pod() {
    let sim = simulate(ends_well);
    sim.network.fail_next("create", "pods", 1_000, Lost);
    sim.create(toy_job("job", &[("Scheduler", 1), ("Worker", 200)]))
        .await;
    sim.advance(40).await;
    let creates = sim.network.count("create", "pods");
    assert!(creates <= 2 * 32, "{creates} creates under way");
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn one_job_that_cannot_go_on_does_not_stop_another() {
    let sim = simulate(ends_well);
    sim.network
        .add_rule(|call| call.name.starts_with("stuck").then_some(Lost));
    sim.create(toy_job("stuck", &SMALL)).await;
    sim.create(toy_job("job", &SMALL)).await;
    sim.advance(30).await;
    assert!(sim.conditions("job").ends_with("Succeeded"));
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn the_deadline_is_kept_though_pods_cannot_be_made() {
    let sim = simulate(|_, _| Runs);
    sim.network
        .fail_next("create", "pods", usize::MAX, Refused(403, "Forbidden"));
    let job = with_spec(
        toy_job("job", &SMALL),
        json!({"runPolicy": {"activeDeadlineSeconds": 900}}),
    );
    sim.create(job).await;
    sim.advance(902).await;
    assert!(
        sim.conditions("job").ends_with("Failed"),
        "{}",
        sim.conditions("job")
    );
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_terminating_namespace_makes_no_storm() {
    let sim = simulate(|_, _| Runs);
    sim.network
        .add_rule(|call| call.is("create", "").then_some(Refused(403, "Forbidden")));
    sim.create(toy_job("job", &SMALL)).await;
    sim.advance(3_600).await;
    let calls = sim.network.take_calls().len();
    assert!(calls < 300, "{calls} calls in an hour");
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_drops_part_of_the_status_makes_no_storm() {
    let sim = simulate(|_, _| Runs);
    let mut definition = serde_json::to_value(ToyJob::definition()).unwrap();
    let known =
        definition.pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/status/properties");
    known
        .unwrap()
        .as_object_mut()
        .unwrap()
        .remove("recovery")
        .unwrap();
    let api: Api<CustomResourceDefinition> = Api::all(sim.user.clone());
    let definition = serde_json::from_value(definition).unwrap();
    api.create(&PostParams::default(), &definition).await.unwrap();
    sim.create(toy_job("job", &SMALL)).await;
    sim.advance(3_600).await;
    assert_eq!(sim.conditions("job"), "Created Running");
    let writes = sim.network.count("patch", "toyjobs/status");
    assert!(writes < 60, "{writes} writes in an hour");
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_not_served_for_a_while_makes_no_storm() {
    let sim = simulate(|_, _| Runs);
    sim.create(toy_job("job", &SMALL)).await;
    sim.network.add_rule(|call| {
        call.is("patch", "toyjobs/status")
            .then_some(Refused(404, "NotFound"))
    });
    sim.advance(3_600).await;
    let writes = sim.network.count("patch", "toyjobs/status");
    assert!(writes < 30, "{writes} writes in an hour");
    sim.network.heal();
    sim.advance(400).await;
    assert_eq!(
        sim.conditions("job"),
        "Created Running",
        "it is written once the server takes it"
    );
    sim.assert_no_violations();
}

/// The garbage collector does so while a job is being deleted and the watch has not said so yet.
#[tokio::test(start_paused = true)]
async fn pods_that_are_deleted_at_once_are_created_with_a_backoff() {
    let sim = simulate(|_, _| Runs);
    sim.create(toy_job("job", &SMALL)).await;
    sim.advance(5).await;
    let before = sim.network.count("create", "services");
    let services: Api<Service> = Api::default_namespaced(sim.user.clone());
    for _ in 0..6_000 {
        let _ = services.delete("job-worker-0", &DeleteParams::default()).await;
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let made = sim.network.count("create", "services") - before;
    assert!((5..20).contains(&made), "{made} times in a minute");
    sim.advance(20).await;
    assert_eq!(sim.services_now().len(), 4);
    // I9, objects created in vain, is the expected violation of this test.
    assert!(sim.monitor.violations().iter().all(|v| v.id == "I9"));
}

#[tokio::test(start_paused = true)]
async fn a_job_deleted_while_it_is_made_leaves_nothing() {
    for at in 0..8 {
        let sim = simulate(ends_well);
        let mut creates = 0;
        sim.network.add_rule(move |call| {
            creates +=
                usize::from(matches!(call.resource.as_str(), "pods" | "services") && call.verb == "create");
            (creates > at && call.verb == "create").then_some(Lost)
        });
        sim.create(toy_job("job", &SMALL)).await;
        sim.advance(1).await;
        sim.delete("job").await;
        sim.network.heal();
        sim.advance(120).await;
        assert!(
            sim.pods_now().is_empty() && sim.services_now().is_empty(),
            "after {at} creates"
        );
        sim.assert_no_violations();
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_others_delete_in_any_phase_is_made_again() {
    // Seconds after creation: pending, running, ended.
    for at in [0, 5, 11] {
        let sim = simulate(ends_well);
        let job = with_spec(
            toy_job("job", &SMALL),
            json!({"runPolicy": {"restartScope": "Replica"}}),
        );
        sim.create(job).await;
        sim.advance(at).await;
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        sim.delete_pod("job-worker-0").await;
        sim.advance(60).await;
        assert!(
            sim.conditions("job").ends_with("Succeeded"),
            "{at}: {}",
            sim.conditions("job")
        );
        let made = sim.network.count("create", "pods");
        assert_eq!(
            made,
            if at == 11 { 4 } else { 5 },
            "at {at}: a success is not run again"
        );
        sim.assert_no_violations();
    }
}

#[tokio::test(start_paused = true)]
async fn restarts_are_counted_once_whatever_answer_is_lost() {
    for fault in [Unanswered, Lost, Garbled(500, "InternalError")] {
        let sim = simulate(|name, attempt| match attempt {
            0 if name.contains("worker-1") => Fails(137, 5),
            0 => Runs,
            _ => ends_well(name, attempt),
        });
        sim.create(toy_job("job", &SMALL)).await;
        sim.advance(5).await;
        sim.network.fail_next("patch", "toyjobs/status", 1, fault.clone());
        sim.network.fail_next("delete", "pods", 2, fault.clone());
        sim.network.fail_next("create", "pods", 2, fault.clone());
        sim.advance(300).await;
        assert!(sim.conditions("job").ends_with("Succeeded"), "{fault:?}");
        assert_eq!(sim.status("job")["restartCount"], 1, "{fault:?}");
        sim.assert_no_violations();
    }
}
