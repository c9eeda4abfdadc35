//! Owners of objects.

use serde_json::{Value, json};
use training_job_simulation::faults::CallFault::Slow;
use training_job_simulation::faults::PodFate::{self, NodeLost, Runs, Succeeds};
use training_job_simulation::faults::WatchDelay;
use training_job_simulation::scenario::users::UserAction;
use training_job_simulation::simulation::{SMALL, Setup, Simulation, train};
use training_job_simulation::world::job::{self, JobType};

use crate::harness::{
    assert_ends, assert_idle, assert_made, assert_within, assert_workers, call, edit, edit_status,
    event_count, make, remove, run_without_violations, settle_and_check, sim_of, succeeds, until,
    with_policy, workload,
};

fn sim(script: fn(&str, u32) -> PodFate) -> Simulation {
    let mut sim = Simulation::with_setup(Setup {
        job_types: JobType::THREE_KINDS,
        ..Setup::mxjobs(script)
    });
    sim.start();
    sim
}

/// A job is deleted and created again immediately, at any moment of its life, three times in a row. Its pods take
/// time to terminate.
#[tokio::test(start_paused = true)]
async fn a_job_is_made_again_under_its_name() {
    for at in [0, 1, 60, 101, 201] {
        for going in [false, true] {
            let slow: fn(&str, u32) -> PodFate = |_, _| NodeLost(100_000, 45);
            let mut sim = sim(if going { slow } else { succeeds });
            sim.create(train("job", &SMALL)).await;
            sim.advance(at).await;
            for _ in 0..3 {
                sim.delete("job").await;
                sim.create(train("job", &SMALL)).await;
                tokio::time::sleep(std::time::Duration::from_millis(700)).await;
            }
            sim.advance(100).await;
            let case = format!("after {at} s, pods that go slowly: {going}");
            let uid = sim.stored("mxjobs", "job")["metadata"]["uid"].clone();
            for pod in sim.cluster.list("pods", None) {
                assert_eq!(
                    pod.value()["metadata"]["ownerReferences"][0]["uid"],
                    uid,
                    "{case}"
                );
            }
            assert_eq!(sim.status("job")["restartCount"], Value::Null, "{case}");
            assert_eq!(event_count(&sim, "FailedCreatePod"), 0, "{case}");
            if going {
                assert_eq!(sim.conditions("job"), "Created Running", "{case}");
                sim.assert_no_violations();
            } else {
                settle_and_check(&mut sim).await;
                assert_ends(&sim, "job", "Succeeded", &case);
            }
        }
    }
}

/// The events of the first job and its pods arrive when the second job exists.
#[test]
fn old_news_come_after_the_new_job() {
    let script = |_: &str, _: u32| Succeeds(300);
    let mut again = workload(
        "again",
        script,
        json!({}),
        vec![(20, UserAction::Recreate(0)), (21, UserAction::Recreate(0))],
    );
    for seed in 0..24 {
        again.scenario.config.watch_delay = Some(WatchDelay {
            seed,
            longest: 25_000,
            duplicates: 200,
        });
        let summary = run_without_violations(&again.scenario, &seed.to_string());
        assert!(
            summary.final_state.contains("Succeeded"),
            "{seed}: {}",
            summary.final_state
        );
        assert!(
            !summary.final_state.contains("restartCount"),
            "{seed}: {}",
            summary.final_state
        );
    }
}

/// The object belongs to its new owner, and nothing restarts. The job reports once that it lacks the object. When the
/// object is gone, only the scope `Job` counts that as a restart.
#[tokio::test(start_paused = true)]
async fn an_object_without_its_owner_reference_is_left_alone() {
    let rows = [
        ("pods", "Replica", "FailedCreatePod"),
        ("pods", "Job", "PodNotControlled"),
        ("services", "Replica", "FailedCreateService"),
    ];
    for (plural, scope, event) in rows {
        let case = format!("{plural}, scope {scope}");
        let mut sim = sim(|_, _| Runs);
        sim.create(with_policy("job", &SMALL, json!({"restartScope": scope})))
            .await;
        sim.advance(10).await;
        let (before, uid) = (
            sim.pods_now(),
            sim.stored(plural, "job-worker-1")["metadata"]["uid"].clone(),
        );
        let released = json!({"metadata": {"ownerReferences": null}});
        edit(&sim, plural, "job-worker-1", released).await;
        sim.network.take_calls();
        sim.advance(3_600).await;
        let calls = sim
            .network
            .take_calls()
            .into_iter()
            .filter(|call| call.verb != "watch");
        assert!(calls.count() < 400, "{case}");
        let after = &sim.stored(plural, "job-worker-1")["metadata"];
        assert_eq!(after["uid"], uid, "{case}");
        assert_eq!(after["ownerReferences"], Value::Null, "{case}");
        assert_eq!(sim.pods_now(), before, "{case}");
        assert_eq!(event_count(&sim, event), 1, "{case}");
        assert_eq!(sim.status("job")["restartCount"], Value::Null, "{case}");
        assert!(remove(&sim, plural, "job-worker-1").await);
        sim.advance(400).await;
        settle_and_check(&mut sim).await;
        assert_made(&sim, &format!("{plural} job-worker-1"), 2, &case);
        let restarts = sim.status("job")["restartCount"].as_i64();
        assert_eq!(restarts, (scope == "Job").then_some(1), "{case}");
    }
}

fn owner(sim: &Simulation, plural: &str, name: &str) -> Value {
    let stored = sim.stored(plural, name);
    json!({"apiVersion": stored["apiVersion"], "kind": stored["kind"], "name": name,
        "uid": stored["metadata"]["uid"], "controller": true})
}

/// Returns a pod with all labels that the job's pods have.
fn pod(name: &str, owners: &[Value]) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "ownerReferences": owners, "labels": {
            "training.kubeflow.org/operator-name": "mxjob-controller",
            "training.kubeflow.org/job-name": "job",
            "training.kubeflow.org/replica-type": "worker",
            "training.kubeflow.org/replica-index": "0",
        }},
        "spec": {"containers": [{"name": "mxnet", "image": "i"}]},
    })
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_looks_like_the_jobs_is_anothers() {
    let mut sim = sim(|_, _| Runs);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "somebody"}, "spec": {"clusterIP": "None"}});
    make(&sim, "services", service).await;
    make(
        &sim,
        "tfjobs",
        job::new(JobType::TensorFlow, "job", &[("Chief", 1)], "Never"),
    )
    .await;
    sim.advance(10).await;
    let somebody = owner(&sim, "services", "somebody");
    make(&sim, "pods", pod("theirs", &[somebody])).await;
    make(&sim, "pods", pod("nobodys", &[])).await;
    sim.create(train("job", &SMALL)).await;
    sim.advance(10).await;
    for phase in ["Failed", "Succeeded"] {
        for name in ["theirs", "nobodys"] {
            edit_status(&sim, "pods", name, json!({"phase": phase})).await;
        }
    }
    sim.advance(300).await;
    assert_eq!(sim.conditions("job"), "Created Running");
    assert_workers(&sim, &json!({"active": 2}), "");
    sim.delete("job").await;
    sim.advance(60).await;
    for name in ["theirs", "nobodys"] {
        assert!(remove(&sim, "pods", name).await, "{name} is left alone");
    }
    settle_and_check(&mut sim).await;
}

#[tokio::test(start_paused = true)]
async fn jobs_of_two_kinds_have_one_name() {
    let mut sim = sim(|_, _| Runs);
    // The jobs have different roles except the worker.
    make(
        &sim,
        "tfjobs",
        job::new(
            JobType::TensorFlow,
            "job",
            &[("Chief", 1), ("Worker", 2)],
            "Never",
        ),
    )
    .await;
    sim.advance(10).await;
    let before = sim.stored("pods", "job-worker-0")["metadata"]["uid"].clone();
    sim.create(train("job", &SMALL)).await;
    sim.network.take_calls();
    sim.advance(3_600).await;
    assert_eq!(sim.stored("pods", "job-worker-0")["metadata"]["uid"], before);
    assert_eq!(sim.network.count("delete", ""), 0);
    let tries = sim.network.count("create", "services");
    assert_within(tries, 10..80, "tries in an hour");
    assert_eq!(event_count(&sim, "FailedCreateService"), 1);
    assert!(remove(&sim, "tfjobs", "job").await);
    sim.advance(400).await;
    settle_and_check(&mut sim).await;
    assert_eq!(sim.conditions("job"), "Created Running");
    assert_eq!(sim.pods_now().len(), 4);
}

/// A second owner changes nothing. If the job's reference is no longer marked as the controller, the pod is not the
/// job's until the mark is back.
#[tokio::test(start_paused = true)]
async fn a_pod_has_two_owners() {
    let mut sim = sim(|_, _| Runs);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "somebody"}, "spec": {"clusterIP": "None"}});
    make(&sim, "services", service).await;
    sim.create(with_policy("job", &SMALL, json!({"restartScope": "Replica"})))
        .await;
    sim.advance(10).await;
    let ours = sim.stored("pods", "job-worker-1")["metadata"]["ownerReferences"][0].clone();
    let mut theirs = owner(&sim, "services", "somebody");
    theirs["controller"] = json!(false);
    let both = |ours: &Value| json!({"metadata": {"ownerReferences": [theirs.clone(), ours.clone()]}});
    edit(&sim, "pods", "job-worker-1", both(&ours)).await;
    sim.network.take_calls();
    sim.advance(300).await;
    assert_idle(&sim, "");
    let mut weak = ours.clone();
    weak["controller"] = json!(false);
    let uid = sim.stored("pods", "job-worker-1")["metadata"]["uid"].clone();
    edit(&sim, "pods", "job-worker-1", both(&weak)).await;
    sim.advance(600).await;
    assert_workers(&sim, &json!({"active": 1}), "");
    assert_eq!(event_count(&sim, "FailedCreatePod"), 1);
    edit(&sim, "pods", "job-worker-1", both(&ours)).await;
    sim.advance(400).await;
    settle_and_check(&mut sim).await;
    assert_eq!(sim.stored("pods", "job-worker-1")["metadata"]["uid"], uid);
    assert_workers(&sim, &json!({"active": 2}), "");
}

/// A user creates a pod in another namespace that names the job as its owner. The garbage collector treats it as an
/// orphan. The job does not count it, whichever runs first.
#[tokio::test(start_paused = true)]
async fn an_owner_is_claimed_from_another_namespace() {
    let mut sim = sim(|_, _| Runs);
    sim.create(train("job", &SMALL)).await;
    sim.advance(10).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "away"}});
    let _ = call(&sim, "POST", "/api/v1/namespaces", namespace).await;
    let ours = sim.stored("pods", "job-worker-1")["metadata"]["ownerReferences"][0].clone();
    let path = "/api/v1/namespaces/away/pods";
    for name in ["job-worker-1", "job-worker-7"] {
        let mut forged = pod(name, std::slice::from_ref(&ours));
        forged["status"] = json!({"phase": "Failed"});
        call(&sim, "POST", path, forged).await.unwrap();
        let failed = json!({"status": {"phase": "Failed", "containerStatuses": [{"name": "mxnet", "image": "i",
            "imageID": "i", "ready": false, "restartCount": 0, "state": {"terminated": {"exitCode": 1}}}]}});
        let _ = call(&sim, "PATCH", &format!("{path}/{name}/status"), failed).await;
    }
    sim.advance(60).await;
    assert_eq!(sim.conditions("job"), "Created Running");
    assert_workers(&sim, &json!({"active": 2}), "");
    assert_eq!(sim.network.count("delete", "pods"), 0);
    settle_and_check(&mut sim).await;
}

/// Objects of another operator have other labels. Their services must also select later pods.
#[tokio::test(start_paused = true)]
async fn objects_of_another_operator_for_the_same_job_are_adopted() {
    let mut sim = sim_of(|_, _| Runs, json!({})).await;
    sim.advance(10).await;
    sim.kill().await;
    let all = |sim: &Simulation| -> Vec<Value> {
        let objects = ["pods", "services"]
            .into_iter()
            .flat_map(|plural| sim.cluster.list(plural, None));
        objects.map(|object| object.value().clone()).collect()
    };
    let before = all(&sim);
    let keys = [
        "operator-name",
        "job-name",
        "replica-type",
        "replica-index",
        "job-role",
    ];
    for object in &before {
        let name = object["metadata"]["name"].as_str().unwrap();
        let mut labels = json!({"group-name": "kubeflow.org", "job-name": "job", "replica": name});
        for key in keys {
            labels[format!("training.kubeflow.org/{key}")] = Value::Null;
        }
        if object["kind"] == "Service" {
            let patch = json!({"metadata": {"labels": labels}, "spec": {"selector": labels}});
            edit(&sim, "services", name, patch).await;
        } else {
            edit(&sim, "pods", name, json!({"metadata": {"labels": labels}})).await;
        }
    }
    // Another operator does not record restarts.
    sim.edit_status("job", json!({"recovery": null})).await;
    sim.start();
    sim.advance(60).await;
    for (before, after) in before.iter().zip(all(&sim)) {
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
        assert_eq!(
            after["spec"]["selector"], before["spec"]["selector"],
            "no old label is left in it"
        );
        let (labels, right) = (&after["metadata"]["labels"], &before["metadata"]["labels"]);
        assert_eq!(labels["group-name"], "kubeflow.org", "others stay");
        for (key, value) in right.as_object().unwrap() {
            assert_eq!(labels[key], *value, "{key}");
        }
    }
    assert_ends(&sim, "job", "Running", "");
    let told = [
        "SuccessfulAdoptPod",
        "SuccessfulAdoptService",
        "SuccessfulCreatePod",
    ];
    assert_eq!(
        told.map(|reason| event_count(&sim, reason)),
        [1, 1, 1],
        "the first operator created"
    );
    settle_and_check(&mut sim).await;
}

/// An object that changes between the read and the patch is read again.
#[tokio::test(start_paused = true)]
async fn an_adoption_names_the_version_that_was_read() {
    let mut sim = sim_of(|_, _| Runs, json!({"restartScope": "Replica"})).await;
    sim.advance(10).await;
    sim.kill().await;
    let label = "training.kubeflow.org/operator-name";
    let pod = "job-worker-1";
    edit(&sim, "pods", pod, json!({"metadata": {"labels": {label: null}}})).await;
    sim.network.fail_next("patch", "pods", 1, Slow(1_000, 0));
    sim.start();
    until(|| sim.network.count("get", "pods") > 0).await;
    edit(&sim, "pods", pod, json!({"metadata": {"ownerReferences": null}})).await;
    sim.advance(60).await;
    assert_eq!(sim.network.count("patch", "pods"), 1, "it was tried");
    let labels = &sim.stored("pods", "job-worker-1")["metadata"]["labels"];
    assert!(labels[label].is_null(), "it is nobody's now: {labels}");
    sim.assert_no_violations();
}
