//! Owners of objects.

use serde_json::{Value, json};
use training_job_simulation::faults::PodFate::{self, NodeLost, Runs, Succeeds};
use training_job_simulation::faults::WatchDelay;
use training_job_simulation::scenario::users::UserAction;
use training_job_simulation::simulation::{SMALL, Setup, Simulation, train, with_spec};
use training_job_simulation::world::job::{self, JobType};

use crate::harness::{
    created_and_deleted, edit, event_count, make, remove, run_without_violations, settle_and_check, succeeds,
    workload,
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
                assert!(sim.conditions("job").ends_with("Succeeded"), "{case}");
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

/// The object belongs to its new owner. The job reports once that the name is taken.
#[tokio::test(start_paused = true)]
async fn the_owner_is_taken_off_a_pod_or_service() {
    for (plural, event) in [("pods", "FailedCreatePod"), ("services", "FailedCreateService")] {
        let mut sim = sim(|_, _| Runs);
        let one = json!({"runPolicy": {"restartScope": "Replica"}});
        sim.create(with_spec(train("job", &SMALL), one)).await;
        sim.advance(10).await;
        let uid = sim.stored(plural, "job-worker-1")["metadata"]["uid"].clone();
        edit(
            &sim,
            plural,
            "job-worker-1",
            json!({"metadata": {"ownerReferences": null}}),
        )
        .await;
        sim.advance(3_600).await;
        let after = sim.stored(plural, "job-worker-1")["metadata"].clone();
        assert_eq!(
            (&after["uid"], &after["ownerReferences"]),
            (&uid, &Value::Null),
            "{plural}"
        );
        assert_eq!(event_count(&sim, event), 1, "{plural}");
        assert!(remove(&sim, plural, "job-worker-1").await);
        sim.advance(400).await;
        settle_and_check(&mut sim).await;
        assert_eq!(
            created_and_deleted(&sim, &format!("{plural} job-worker-1")).0,
            2,
            "{plural}"
        );
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
            crate::harness::edit_status(&sim, "pods", name, json!({"phase": phase})).await;
        }
    }
    sim.advance(300).await;
    assert_eq!(sim.conditions("job"), "Created Running");
    assert_eq!(
        sim.status("job")["replicaStatuses"]["Worker"],
        json!({"active": 2})
    );
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
    assert!((10..80).contains(&tries), "{tries} tries in an hour");
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
    let one = json!({"runPolicy": {"restartScope": "Replica"}});
    sim.create(with_spec(train("job", &SMALL), one)).await;
    sim.advance(10).await;
    let ours = sim.stored("pods", "job-worker-1")["metadata"]["ownerReferences"][0].clone();
    let mut theirs = owner(&sim, "services", "somebody");
    theirs["controller"] = json!(false);
    let both = |ours: &Value| json!({"metadata": {"ownerReferences": [theirs.clone(), ours.clone()]}});
    edit(&sim, "pods", "job-worker-1", both(&ours)).await;
    sim.network.take_calls();
    sim.advance(300).await;
    assert!(sim.network.take_calls().iter().all(|c| c.verb == "watch"));
    let mut weak = ours.clone();
    weak["controller"] = json!(false);
    let uid = sim.stored("pods", "job-worker-1")["metadata"]["uid"].clone();
    edit(&sim, "pods", "job-worker-1", both(&weak)).await;
    sim.advance(600).await;
    assert_eq!(
        sim.status("job")["replicaStatuses"]["Worker"],
        json!({"active": 1})
    );
    assert_eq!(event_count(&sim, "FailedCreatePod"), 1);
    edit(&sim, "pods", "job-worker-1", both(&ours)).await;
    sim.advance(400).await;
    settle_and_check(&mut sim).await;
    assert_eq!(sim.stored("pods", "job-worker-1")["metadata"]["uid"], uid);
    assert_eq!(
        sim.status("job")["replicaStatuses"]["Worker"],
        json!({"active": 2})
    );
}

/// A user creates a pod in another namespace that names the job as its owner. The garbage collector treats it as an
/// orphan. The job does not count it, whichever runs first.
#[tokio::test(start_paused = true)]
async fn an_owner_is_claimed_from_another_namespace() {
    let mut sim = sim(|_, _| Runs);
    sim.create(train("job", &SMALL)).await;
    sim.advance(10).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "away"}});
    let _ = crate::harness::call(&sim, "POST", "/api/v1/namespaces", namespace).await;
    let ours = sim.stored("pods", "job-worker-1")["metadata"]["ownerReferences"][0].clone();
    let path = "/api/v1/namespaces/away/pods";
    for name in ["job-worker-1", "job-worker-7"] {
        let mut forged = pod(name, std::slice::from_ref(&ours));
        forged["status"] = json!({"phase": "Failed"});
        crate::harness::call(&sim, "POST", path, forged).await.unwrap();
        let failed = json!({"status": {"phase": "Failed", "containerStatuses": [{"name": "mxnet", "image": "i",
            "imageID": "i", "ready": false, "restartCount": 0, "state": {"terminated": {"exitCode": 1}}}]}});
        let _ = crate::harness::call(&sim, "PATCH", &format!("{path}/{name}/status"), failed).await;
    }
    sim.advance(60).await;
    assert_eq!(sim.conditions("job"), "Created Running");
    assert_eq!(
        sim.status("job")["replicaStatuses"]["Worker"],
        json!({"active": 2})
    );
    assert_eq!(sim.network.count("delete", "pods"), 0);
    settle_and_check(&mut sim).await;
}
