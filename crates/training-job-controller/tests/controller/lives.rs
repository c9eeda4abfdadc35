//! Complete lives of jobs, without faults.

use serde_json::json;

use training_job_simulation::faults::CallFault;
use training_job_simulation::faults::PodFate::{Fails, Runs, Succeeds};
use training_job_simulation::simulation::{SMALL, with_spec};
use training_job_testbed::ELASTIC;

use crate::toys::{simulate, toy_job, without_operator};

#[tokio::test(start_paused = true)]
async fn a_job_is_created_runs_and_succeeds() {
    let sim = simulate(|name, _| Succeeds(if name.contains("scheduler") { 15 } else { 10 }));
    sim.create(toy_job("job", &SMALL)).await;
    sim.advance(5).await;
    assert_eq!(sim.conditions("job"), "Created Running");
    assert_eq!(
        sim.pods_now(),
        [
            "job-scheduler-0:Running",
            "job-server-0:Running",
            "job-worker-0:Running",
            "job-worker-1:Running"
        ]
    );
    assert_eq!(sim.status("job")["replicaStatuses"]["Worker"]["active"], 2);
    sim.advance(20).await;
    assert_eq!(sim.conditions("job"), "Created Running=False Succeeded");
    assert_eq!(
        sim.status("job")["replicaStatuses"]["Worker"],
        json!({"succeeded": 2})
    );
    assert_eq!(sim.pods_now().len(), 4, "finished pods keep their logs");
    assert_eq!(
        sim.events(),
        [
            "SuccessfulCreateService",
            "SuccessfulCreatePod",
            "ToyJobSucceeded"
        ]
    );
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_host_name_is_there_before_its_host() {
    let sim = simulate(|_, _| Runs);
    sim.create(toy_job("job", &SMALL)).await;
    sim.advance(5).await;
    let creates = sim
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
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_final_failure_fails_the_job_and_stops_the_rest() {
    let sim = simulate(|name, _| {
        if name.contains("worker-1") {
            Fails(1, 5)
        } else {
            Runs
        }
    });
    sim.create(toy_job("job", &SMALL)).await;
    sim.advance(30).await;
    assert_eq!(sim.conditions("job"), "Created Running=False Failed");
    assert_eq!(sim.pods_now(), ["job-worker-1:Failed"]);
    assert_eq!(sim.services_now(), ["job-worker-1"]);
    let failure = &sim.status("job")["failure"];
    assert_eq!(
        (failure["role"].as_str(), failure["index"].as_i64()),
        (Some("Worker"), Some(1))
    );
    assert_eq!(failure["exitCode"], 1);
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_retryable_failure_restarts_the_whole_job() {
    let sim = simulate(|name, attempt| match attempt {
        0 if name.contains("worker-1") => Fails(137, 5),
        0 => Runs,
        _ => Succeeds(5),
    });
    sim.create(toy_job("job", &SMALL)).await;
    sim.advance(10).await;
    assert_eq!(sim.status("job")["restartCount"], 1);
    sim.advance(30).await;
    assert_eq!(sim.conditions("job"), "Created Running=False Succeeded");
    assert_eq!(sim.pods_now().len(), 4);
    assert!(
        sim.pods_now().iter().all(|p| p.contains("+1:Succeeded")),
        "{:?}",
        sim.pods_now()
    );
    assert_eq!(sim.status("job")["restartCount"], 1);
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn scope_replica_restarts_the_failed_one_alone() {
    let sim = simulate(|name, attempt| match (name, attempt) {
        ("job-worker-1", 0) => Fails(137, 5),
        _ => Succeeds(20),
    });
    let job = with_spec(
        toy_job("job", &SMALL),
        json!({"runPolicy": {"restartScope": "Replica"}}),
    );
    sim.create(job).await;
    sim.advance(12).await;
    assert_eq!(
        sim.pods_now(),
        [
            "job-scheduler-0:Running",
            "job-server-0:Running",
            "job-worker-0:Running",
            "job-worker-1+1:Running"
        ]
    );
    sim.advance(40).await;
    assert!(sim.conditions("job").ends_with("Succeeded"));
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_suspended_job_has_no_pods_until_it_is_resumed() {
    let sim = simulate(|_, _| Succeeds(100));
    sim.create(toy_job("job", &SMALL)).await;
    sim.advance(10).await;
    sim.edit("job", json!({"spec": {"runPolicy": {"suspend": true}}}))
        .await;
    sim.advance(10).await;
    assert_eq!(sim.conditions("job"), "Created Running=False Suspended");
    assert!(sim.pods_now().is_empty() && sim.services_now().is_empty());
    let before = sim.status("job")["startTime"].clone();
    sim.edit("job", json!({"spec": {"runPolicy": {"suspend": false}}}))
        .await;
    sim.advance(10).await;
    assert_eq!(sim.conditions("job"), "Suspended=False Created Running");
    assert_eq!(
        sim.network.count("create", "pods"),
        8,
        "each pod was made once, and once more"
    );
    assert_ne!(sim.status("job")["startTime"], before);
    sim.advance(200).await;
    assert!(sim.conditions("job").ends_with("Succeeded"));
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn workers_come_and_go_with_the_spec() {
    let sim = simulate(|_, _| Runs);
    let mut job = toy_job("job", &SMALL);
    job["metadata"]["annotations"] = json!({(ELASTIC): ""});
    sim.create(job).await;
    sim.advance(5).await;
    let workers = |n: i32| json!({"spec": {"replicaSpecs": {"Worker": {"replicas": n}}}});
    sim.edit("job", workers(4)).await;
    sim.advance(5).await;
    assert_eq!(sim.pods_now().len(), 6);
    assert_eq!(sim.services_now().len(), 6);
    sim.edit("job", workers(1)).await;
    sim.advance(5).await;
    assert_eq!(
        sim.pods_now(),
        [
            "job-scheduler-0:Running",
            "job-server-0:Running",
            "job-worker-0:Running"
        ]
    );
    assert_eq!(sim.services_now().len(), 3);
    assert_eq!(sim.status("job")["restartCount"], json!(null));
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_finished_job_is_deleted_when_its_time_is_over() {
    let sim = simulate(|_, _| Succeeds(1));
    let job = with_spec(
        toy_job("job", &SMALL),
        json!({"runPolicy": {"ttlSecondsAfterFinished": 7_200}}),
    );
    sim.create(job).await;
    sim.advance(7_190).await;
    assert!(sim.conditions("job").ends_with("Succeeded"));
    sim.advance(20).await;
    assert!(sim.stored("toyjobs", "job").is_null());
    assert!(sim.pods_now().is_empty() && sim.services_now().is_empty());
    assert_eq!(
        sim.events()
            .iter()
            .filter(|e| *e == "SuccessfulDeleteJob")
            .count(),
        1
    );
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn the_deadline_ends_a_job_that_hangs() {
    let sim = simulate(|_, _| Runs);
    let job = with_spec(
        toy_job("job", &SMALL),
        json!({"runPolicy": {"activeDeadlineSeconds": 60}}),
    );
    sim.create(job).await;
    sim.advance(59).await;
    assert_eq!(sim.conditions("job"), "Created Running");
    // The job started when its status was first written, within a second.
    sim.advance(3).await;
    assert_eq!(sim.conditions("job"), "Created Running=False Failed");
    sim.advance(5).await;
    assert!(sim.pods_now().is_empty());
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn the_clean_up_policy_decides_which_pods_remain() {
    for (policy, pods, services) in [("All", 0, 0), ("Running", 3, 3), ("None", 4, 4)] {
        let sim = simulate(|name, _| {
            if name.contains("server") {
                Runs
            } else {
                Succeeds(5)
            }
        });
        let job = with_spec(
            toy_job("job", &SMALL),
            json!({"runPolicy": {"cleanPodPolicy": policy}}),
        );
        sim.create(job).await;
        sim.advance(30).await;
        assert!(sim.conditions("job").ends_with("Succeeded"), "{policy}");
        assert_eq!(sim.pods_now().len(), pods, "{policy}: {:?}", sim.pods_now());
        assert_eq!(sim.services_now().len(), services, "{policy}");
        sim.assert_no_violations();
    }
}

#[tokio::test(start_paused = true)]
async fn an_invalid_job_fails_once_and_starts_when_it_is_corrected() {
    let sim = simulate(|_, _| Succeeds(5));
    sim.create(toy_job("job", &[("Worker", -1)])).await;
    sim.advance(1).await;
    assert_eq!(sim.conditions("job"), "Failed");
    assert_eq!(sim.events(), ["ToyJobFailedValidation"]);
    sim.network.take_calls();
    sim.advance(3_600).await;
    assert!(
        sim.network.take_calls().iter().all(|c| c.verb == "watch"),
        "it is not tried again"
    );
    sim.edit(
        "job",
        json!({"spec": {"replicaSpecs": {"Worker": {"replicas": 1}}}}),
    )
    .await;
    sim.advance(30).await;
    assert_eq!(sim.conditions("job"), "Created Running=False Succeeded");
    sim.assert_no_violations();
}

/// The API server refuses every write of an object if a field that a validation rule uses has a wrong type.
#[tokio::test(start_paused = true)]
async fn an_invalid_job_whose_status_is_refused_gets_its_event_and_no_second_try() {
    let sim = simulate(|_, _| Succeeds(5));
    sim.network.fail_next(
        "patch",
        "toyjobs/status",
        usize::MAX,
        CallFault::Refused(422, "Invalid"),
    );
    sim.create(toy_job("bad", &[("Worker", -1)])).await;
    sim.advance(3_600).await;
    assert_eq!(sim.events(), ["ToyJobFailedValidation"]);
    assert_eq!(sim.network.count("patch", "toyjobs/status"), 1);
    sim.network.heal();
    sim.edit(
        "bad",
        json!({"spec": {"replicaSpecs": {"Worker": {"replicas": 1}}}}),
    )
    .await;
    sim.advance(30).await;
    assert_eq!(sim.conditions("bad"), "Created Running=False Succeeded");
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_decode_disturbs_no_other() {
    let mut sim = without_operator(|_, _| Succeeds(5));
    let mut odd = toy_job("odd", &SMALL);
    odd["spec"]["replicaSpecs"] = json!("many");
    sim.create(odd).await;
    sim.create(toy_job("job", &SMALL)).await;
    sim.start();
    sim.advance(30).await;
    assert!(sim.conditions("job").ends_with("Succeeded"));
    assert_eq!(sim.conditions("odd"), "Failed");
    sim.assert_no_violations();
}
#[tokio::test(start_paused = true)]
async fn a_mistake_in_an_edit_costs_one_event_and_no_pod() {
    let sim = simulate(|_, _| Runs);
    sim.create(toy_job("job", &SMALL)).await;
    sim.advance(5).await;
    let pods = sim.pods_now();
    sim.edit(
        "job",
        json!({"spec": {"replicaSpecs": {"Worker": {"replicas": -1}}}}),
    )
    .await;
    sim.advance(5).await;
    // The mistake is reported once, even if the job's pods change.
    sim.pods()
        .patch(
            "job-worker-0",
            &Default::default(),
            &kube::api::Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}})),
        )
        .await
        .unwrap();
    sim.advance(600).await;
    assert_eq!(sim.conditions("job"), "Created Running");
    assert_eq!(sim.pods_now(), pods);
    assert_eq!(
        sim.events()
            .iter()
            .filter(|e| *e == "ToyJobFailedValidation")
            .count(),
        1
    );
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_life_lived_again_is_the_same_to_the_byte() {
    let mut histories = Vec::new();
    for _ in 0..2 {
        let mut sim = simulate(|name, attempt| match attempt {
            0 if name.ends_with("worker-1") => Fails(137, 5),
            _ => Succeeds(7),
        });
        for number in 0..20 {
            sim.create(toy_job(&format!("job-{number}"), &SMALL)).await;
        }
        sim.advance(6).await;
        sim.cluster.compact();
        sim.cluster.cut_watches(None);
        sim.kill().await;
        sim.start();
        sim.advance(120).await;
        let changes = sim.cluster.changes(0);
        let history: Vec<_> = changes.iter().map(|c| c.object().value().to_string()).collect();
        histories.push((history, sim.network.take_calls()));
        sim.assert_no_violations();
    }
    let (first, second) = (&histories[0], &histories[1]);
    assert!(first.0.len() > 500, "{}", first.0.len());
    assert!(first == second);
}

/// A finished job has no active replicas, even if a user writes a count into its status. The operator corrects the
/// status once.
#[tokio::test(start_paused = true)]
async fn edited_counts_of_a_finished_job_are_corrected() {
    for (code, policy) in [(0, "None"), (1, "None"), (0, "All"), (1, "Running")] {
        let sim = simulate(move |_, _| if code == 0 { Succeeds(5) } else { Fails(code, 5) });
        let job = toy_job("job", &SMALL);
        sim.create(with_spec(job, json!({"runPolicy": {"cleanPodPolicy": policy}})))
            .await;
        sim.advance(60).await;
        let end = sim.conditions("job");
        let right = sim.status("job");
        for count in [json!(99), json!(-7), json!("many")] {
            let counts = json!({"Worker": {"active": count}, "Nobody": {"active": count}});
            sim.edit_status("job", json!({"replicaStatuses": counts})).await;
            sim.network.take_calls();
            sim.advance(60).await;
            let status = sim.status("job");
            let roles = status["replicaStatuses"].as_object().unwrap();
            assert!(roles.values().all(|role| role["active"].is_null()), "{status}");
            assert_eq!(sim.conditions("job"), end, "{count}");
            assert_eq!(status["completionTime"], right["completionTime"]);
            let calls = sim.network.take_calls();
            let writes = calls
                .iter()
                .filter(|call| call.verb == "patch" && call.resource.starts_with("toyjobs"));
            assert_eq!(writes.count(), 1, "{count}");
        }
    }
}
