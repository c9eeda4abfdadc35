//! Whole lives of jobs, without faults.

use serde_json::json;

use training_job_simulation::faults::CallFault;
use training_job_simulation::faults::PodFate::{Fails, Runs, Succeeds};
use training_job_simulation::simulation::{SMALL, Simulation, train, with_spec};

#[tokio::test(start_paused = true)]
async fn a_job_is_created_runs_and_succeeds() {
    let world = Simulation::new(|name, _| Succeeds(if name.contains("scheduler") { 15 } else { 10 }));
    world.create(train("job", &SMALL)).await;
    world.advance(5).await;
    assert_eq!(world.conditions("job"), "Created Running");
    assert_eq!(
        world.pods_now(),
        [
            "job-scheduler-0:Running",
            "job-server-0:Running",
            "job-worker-0:Running",
            "job-worker-1:Running"
        ]
    );
    assert_eq!(world.status("job")["replicaStatuses"]["Worker"]["active"], 2);
    world.advance(20).await;
    assert_eq!(world.conditions("job"), "Created Running=False Succeeded");
    assert_eq!(
        world.status("job")["replicaStatuses"]["Worker"],
        json!({"succeeded": 2})
    );
    assert_eq!(world.pods_now().len(), 4, "finished pods keep their logs");
    assert_eq!(
        world.events(),
        ["SuccessfulCreateService", "SuccessfulCreatePod", "MXJobSucceeded"]
    );
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_host_name_is_there_before_its_host() {
    let world = Simulation::new(|_, _| Runs);
    world.create(train("job", &SMALL)).await;
    world.advance(5).await;
    let creates = world
        .network
        .take_calls()
        .into_iter()
        .filter(|c| c.verb == "create");
    let made: Vec<_> = creates
        .map(|c| c.resource)
        .filter(|r| matches!(r.as_str(), "pods" | "services"))
        .collect();
    let (services, pods) = made.split_at(4);
    assert_eq!(
        (services, pods),
        (
            &["services"; 4].map(String::from)[..],
            &["pods"; 4].map(String::from)[..]
        )
    );
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_final_failure_fails_the_job_and_stops_the_rest() {
    let world = Simulation::new(|name, _| {
        if name.contains("worker-1") {
            Fails(1, 5)
        } else {
            Runs
        }
    });
    world.create(train("job", &SMALL)).await;
    world.advance(30).await;
    assert_eq!(world.conditions("job"), "Created Running=False Failed");
    assert_eq!(world.pods_now(), ["job-worker-1:Failed"]);
    assert_eq!(world.services_now(), ["job-worker-1"]);
    let failure = &world.status("job")["failure"];
    assert_eq!(
        (failure["role"].as_str(), failure["index"].as_i64()),
        (Some("Worker"), Some(1))
    );
    assert_eq!(failure["exitCode"], 1);
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_retryable_failure_restarts_the_whole_job() {
    let world = Simulation::new(|name, attempt| match attempt {
        0 if name.contains("worker-1") => Fails(137, 5),
        0 => Runs,
        _ => Succeeds(5),
    });
    world.create(train("job", &SMALL)).await;
    world.advance(10).await;
    assert_eq!(world.status("job")["restartCount"], 1);
    world.advance(30).await;
    assert_eq!(world.conditions("job"), "Created Running=False Succeeded");
    assert_eq!(world.pods_now().len(), 4);
    assert!(
        world.pods_now().iter().all(|p| p.contains("+1:Succeeded")),
        "{:?}",
        world.pods_now()
    );
    assert_eq!(world.status("job")["restartCount"], 1);
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn scope_replica_restarts_the_failed_one_alone() {
    let world = Simulation::new(|name, attempt| match (name, attempt) {
        ("job-worker-1", 0) => Fails(137, 5),
        _ => Succeeds(20),
    });
    let job = with_spec(
        train("job", &SMALL),
        json!({"runPolicy": {"restartScope": "Replica"}}),
    );
    world.create(job).await;
    world.advance(12).await;
    assert_eq!(
        world.pods_now(),
        [
            "job-scheduler-0:Running",
            "job-server-0:Running",
            "job-worker-0:Running",
            "job-worker-1+1:Running"
        ]
    );
    world.advance(40).await;
    assert!(world.conditions("job").ends_with("Succeeded"));
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_suspended_job_has_no_pods_until_it_is_resumed() {
    let world = Simulation::new(|_, _| Succeeds(100));
    world.create(train("job", &SMALL)).await;
    world.advance(10).await;
    world
        .edit("job", json!({"spec": {"runPolicy": {"suspend": true}}}))
        .await;
    world.advance(10).await;
    assert_eq!(world.conditions("job"), "Created Running=False Suspended");
    assert!(world.pods_now().is_empty() && world.services_now().is_empty());
    let before = world.status("job")["startTime"].clone();
    world
        .edit("job", json!({"spec": {"runPolicy": {"suspend": false}}}))
        .await;
    world.advance(10).await;
    assert_eq!(world.conditions("job"), "Suspended=False Created Running");
    assert_eq!(
        world.network.count("create", "pods"),
        8,
        "each pod was made once, and once more"
    );
    assert_ne!(world.status("job")["startTime"], before);
    world.advance(200).await;
    assert!(world.conditions("job").ends_with("Succeeded"));
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn workers_come_and_go_with_the_spec() {
    let world = Simulation::new(|_, _| Runs);
    world.create(train("job", &SMALL)).await;
    world.advance(5).await;
    let workers = |n: i32| json!({"spec": {"mxReplicaSpecs": {"Worker": {"replicas": n}}}});
    world.edit("job", workers(4)).await;
    world.advance(5).await;
    assert_eq!(world.pods_now().len(), 6);
    assert_eq!(world.services_now().len(), 6);
    world.edit("job", workers(1)).await;
    world.advance(5).await;
    assert_eq!(
        world.pods_now(),
        [
            "job-scheduler-0:Running",
            "job-server-0:Running",
            "job-worker-0:Running"
        ]
    );
    assert_eq!(world.services_now().len(), 3);
    assert_eq!(world.status("job")["restartCount"], json!(null));
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_finished_job_is_deleted_when_its_time_is_over() {
    let world = Simulation::new(|_, _| Succeeds(1));
    let job = with_spec(
        train("job", &SMALL),
        json!({"runPolicy": {"ttlSecondsAfterFinished": 7_200}}),
    );
    world.create(job).await;
    world.advance(7_190).await;
    assert!(world.conditions("job").ends_with("Succeeded"));
    world.advance(20).await;
    assert!(world.stored("mxjobs", "job").is_null());
    assert!(world.pods_now().is_empty() && world.services_now().is_empty());
    assert_eq!(
        world
            .events()
            .iter()
            .filter(|e| *e == "SuccessfulDeleteJob")
            .count(),
        1
    );
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn the_deadline_ends_a_job_that_hangs() {
    let world = Simulation::new(|_, _| Runs);
    let job = with_spec(
        train("job", &SMALL),
        json!({"runPolicy": {"activeDeadlineSeconds": 60}}),
    );
    world.create(job).await;
    world.advance(59).await;
    assert_eq!(world.conditions("job"), "Created Running");
    // The job started when its status was first written: within a second.
    world.advance(3).await;
    assert_eq!(world.conditions("job"), "Created Running=False Failed");
    world.advance(5).await;
    assert!(world.pods_now().is_empty());
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn what_stays_at_the_end_follows_the_clean_up_policy() {
    for (policy, pods, services) in [("All", 0, 0), ("Running", 3, 3), ("None", 4, 4)] {
        let world = Simulation::new(|name, _| {
            if name.contains("server") {
                Runs
            } else {
                Succeeds(5)
            }
        });
        let job = with_spec(
            train("job", &SMALL),
            json!({"runPolicy": {"cleanPodPolicy": policy}}),
        );
        world.create(job).await;
        world.advance(30).await;
        assert!(world.conditions("job").ends_with("Succeeded"), "{policy}");
        assert_eq!(world.pods_now().len(), pods, "{policy}: {:?}", world.pods_now());
        assert_eq!(world.services_now().len(), services, "{policy}");
        world.assert_no_violations();
    }
}

#[tokio::test(start_paused = true)]
async fn an_invalid_job_fails_once_and_begins_when_it_is_mended() {
    let world = Simulation::new(|_, _| Succeeds(5));
    world.create(train("job", &[("Worker", -1)])).await;
    world.advance(1).await;
    assert_eq!(world.conditions("job"), "Failed");
    assert_eq!(world.events(), ["MXJobFailedValidation"]);
    world.network.take_calls();
    world.advance(3_600).await;
    assert!(
        world.network.take_calls().iter().all(|c| c.verb == "watch"),
        "it is not tried again"
    );
    world
        .edit(
            "job",
            json!({"spec": {"mxReplicaSpecs": {"Worker": {"replicas": 1}}}}),
        )
        .await;
    world.advance(30).await;
    assert_eq!(world.conditions("job"), "Created Running=False Succeeded");
    world.assert_no_violations();
}

/// The API server takes no write of an object in which a field that a rule is about has a wrong type.
#[tokio::test(start_paused = true)]
async fn an_invalid_job_whose_status_is_refused_gets_its_event_and_no_second_try() {
    let world = Simulation::new(|_, _| Succeeds(5));
    world.network.fail_next(
        "patch",
        "mxjobs/status",
        usize::MAX,
        CallFault::Refused(422, "Invalid"),
    );
    world.create(train("bad", &[("Worker", -1)])).await;
    world.advance(3_600).await;
    assert_eq!(world.events(), ["MXJobFailedValidation"]);
    assert_eq!(world.network.count("patch", "mxjobs/status"), 1);
    world.network.heal();
    world
        .edit(
            "bad",
            json!({"spec": {"mxReplicaSpecs": {"Worker": {"replicas": 1}}}}),
        )
        .await;
    world.advance(30).await;
    assert_eq!(world.conditions("bad"), "Created Running=False Succeeded");
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_decode_disturbs_no_other() {
    let mut world = Simulation::without_operator(|_, _| Succeeds(5));
    let mut odd = train("odd", &SMALL);
    odd["spec"]["mxReplicaSpecs"] = json!("many");
    world.create(odd).await;
    world.create(train("job", &SMALL)).await;
    world.start();
    world.advance(30).await;
    assert!(world.conditions("job").ends_with("Succeeded"));
    assert_eq!(world.conditions("odd"), "Failed");
    world.assert_no_violations();
}
#[tokio::test(start_paused = true)]
async fn a_mistake_in_an_edit_costs_one_event_and_no_pod() {
    let world = Simulation::new(|_, _| Runs);
    world.create(train("job", &SMALL)).await;
    world.advance(5).await;
    let pods = world.pods_now();
    world
        .edit(
            "job",
            json!({"spec": {"mxReplicaSpecs": {"Worker": {"replicas": -1}}}}),
        )
        .await;
    world.advance(5).await;
    // Whatever happens to its pods, the mistake is told once.
    world
        .pods()
        .patch(
            "job-worker-0",
            &Default::default(),
            &kube::api::Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}})),
        )
        .await
        .unwrap();
    world.advance(600).await;
    assert_eq!(world.conditions("job"), "Created Running");
    assert_eq!(world.pods_now(), pods);
    assert_eq!(
        world
            .events()
            .iter()
            .filter(|e| *e == "MXJobFailedValidation")
            .count(),
        1
    );
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_life_lived_again_is_the_same_to_the_byte() {
    let mut histories = Vec::new();
    for _ in 0..2 {
        let mut world = Simulation::new(|name, attempt| match attempt {
            0 if name.ends_with("worker-1") => Fails(137, 5),
            _ => Succeeds(7),
        });
        for number in 0..20 {
            world.create(train(&format!("job-{number}"), &SMALL)).await;
        }
        world.advance(6).await;
        world.cluster.compact();
        world.cluster.cut_watches(None);
        world.kill().await;
        world.start();
        world.advance(120).await;
        let changes = world.cluster.changes(0);
        let history: Vec<_> = changes.iter().map(|c| c.object().value().to_string()).collect();
        histories.push((history, world.network.take_calls()));
        world.assert_no_violations();
    }
    let (first, second) = (&histories[0], &histories[1]);
    assert!(first.0.len() > 500, "{}", first.0.len());
    assert!(first == second);
}
