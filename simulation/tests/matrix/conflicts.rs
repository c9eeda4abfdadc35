//! Objects that exist already, or no longer.

use serde_json::{Value, json};
use training_job_simulation::call::Call;
use training_job_simulation::faults::CallFault::{ResetAfter, Slow, Unanswered};
use training_job_simulation::faults::PodFate::{Fails, NodeLost, Runs};
use training_job_simulation::simulation::{SMALL, Simulation, train};
use training_job_simulation::world::job::{self, JobType};

use crate::harness::{
    assert_ends, assert_no_children, assert_within, created_and_deleted, edit, edit_job, event_count, make,
    policy, remove, settle_and_check, sim_of, succeeds, with_policy, worker,
};

/// A user labels the job while each status write is in flight, so that the API server refuses the write.
#[tokio::test(start_paused = true)]
async fn the_job_changes_while_its_status_is_on_its_way() {
    let mut sim = sim_of(succeeds, json!({})).await;
    sim.network
        .add_rule(|call| call.is("patch", "mxjobs/status").then_some(Slow(1_000, 0)));
    for number in 0..500 {
        let label = json!({"metadata": {"labels": {"n": number.to_string()}}});
        edit_job(&sim, label).await;
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
    assert_eq!(sim.network.count("list", "mxjobs"), 1, "the watch tells why");
    let tries = sim.network.count("patch", "mxjobs/status");
    assert_within(tries, 5..=250, "tries: one for each change is enough");
    assert_eq!(sim.conditions("job"), "", "each of them was refused");
    settle_and_check(&mut sim).await;
    // When the status was finally written, the job had finished.
    assert_eq!(sim.conditions("job"), "Created Running=False Succeeded");
    assert_eq!(event_count(&sim, "MXJobSucceeded"), 1);
    assert!(!sim.status("job")["startTime"].is_null());
}

/// The watch does not deliver the change that led to the conflict, so the operator reads the job.
#[tokio::test(start_paused = true)]
async fn a_change_of_the_job_is_not_in_the_watch() {
    let mut sim = sim_of(succeeds, json!({})).await;
    sim.advance(100).await;
    sim.cluster.freeze_watches(Some("mxjobs"));
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    edit_job(&sim, label).await;
    sim.network.take_calls();
    // The workers end.
    sim.advance(50).await;
    assert_eq!(sim.network.count("patch", "mxjobs/status"), 2);
    assert_eq!(sim.network.count("list", "mxjobs"), 1);
    let workers = &sim.status("job")["replicaStatuses"]["Worker"];
    assert_eq!(workers["succeeded"], 2);
    settle_and_check(&mut sim).await;
}

/// Responses are lost, and watches are silent. The operator learns only that the names of the objects it created are
/// taken.
#[tokio::test(start_paused = true)]
async fn created_objects_exist_already() {
    for fault in [ResetAfter, Unanswered] {
        let mut sim = Simulation::new(succeeds);
        sim.advance(5).await;
        sim.network.fail_next("create", "pods", 4, fault.clone());
        sim.network.fail_next("create", "services", 4, fault.clone());
        sim.cluster.freeze_watches(Some("pods"));
        sim.cluster.freeze_watches(Some("services"));
        sim.create(train("job", &SMALL)).await;
        sim.advance(100).await;
        assert!(sim.network.count("create", "pods") > 4, "{fault:?}");
        assert_eq!(sim.network.count("delete", ""), 0, "{fault:?}");
        for kind in ["pods", "services"] {
            assert_eq!(
                created_and_deleted(&sim, &format!("{kind} job-worker-1")),
                (1, 0),
                "{fault:?}: {kind}"
            );
        }
        settle_and_check(&mut sim).await;
        assert_ends(&sim, "job", "Succeeded", format_args!("{fault:?}"));
        assert!(event_count(&sim, "FailedCreatePod") <= 1, "{fault:?}");
    }
}

/// The response to the creation was lost, watches do not deliver the pod, and a user deletes it, which takes a
/// minute.
#[tokio::test(start_paused = true)]
async fn created_objects_exist_and_are_terminating() {
    let sim = Simulation::new(|_, _| NodeLost(100_000, 60));
    sim.advance(5).await;
    sim.network.fail_next("create", "pods", 1, Unanswered);
    sim.cluster.freeze_watches(Some("pods"));
    sim.create(train("job", &[("Worker", 1)])).await;
    sim.advance(10).await;
    sim.delete_pod("job-worker-0").await;
    sim.advance(50).await;
    assert!(sim.network.count("create", "pods") > 1);
    assert_eq!(
        event_count(&sim, "SuccessfulCreatePod"),
        0,
        "that pod is not the one it needs"
    );
    sim.advance(100).await;
    assert_eq!(created_and_deleted(&sim, "pods job-worker-0"), (2, 1));
    sim.assert_no_violations();
}

/// Returns an object of this name that the job does not control.
fn stranger(plural: &str, name: &str, owner: &Value) -> Value {
    let owners = if owner.is_null() {
        json!([])
    } else {
        json!([owner])
    };
    job::foreign(plural, &json!({"name": name, "ownerReferences": owners}))
}

/// The job gets an event and no condition, because the object may be deleted at any moment, and the other replicas
/// run.
#[tokio::test(start_paused = true)]
async fn a_strangers_object_has_the_name() {
    for plural in ["pods", "services"] {
        for kind in ["", "MXJob", "Service"] {
            let mut sim = Simulation::new(|_, _| Runs);
            sim.create(with_policy("other", &SMALL, json!({"suspend": true})))
                .await;
            make(&sim, "services", stranger("services", "other", &Value::Null)).await;
            let owner = match kind {
                "" => Value::Null,
                "MXJob" => json!({"apiVersion": "kubeflow.org/v1", "kind": kind, "name": "other",
                    "uid": sim.stored("mxjobs", "other")["metadata"]["uid"], "controller": true}),
                _ => json!({"apiVersion": "v1", "kind": kind, "name": "other",
                    "uid": sim.stored("services", "other")["metadata"]["uid"], "controller": true}),
            };
            make(&sim, plural, stranger(plural, "job-worker-0", &owner)).await;
            let before = sim.stored(plural, "job-worker-0")["metadata"].clone();
            sim.create(train("job", &SMALL)).await;
            sim.network.take_calls();
            sim.advance(3_600).await;
            let case = format!("{plural} of {kind:?}");
            let event = if plural == "pods" {
                "FailedCreatePod"
            } else {
                "FailedCreateService"
            };
            assert_eq!(event_count(&sim, event), 1, "{case}");
            let tries = sim.network.count("create", plural);
            assert_within(tries, 10..40, format_args!("{case}: tries in an hour"));
            assert_eq!(sim.network.count("delete", ""), 0, "{case}");
            let after = sim.stored(plural, "job-worker-0")["metadata"].clone();
            assert_eq!(after["uid"], before["uid"]);
            assert_eq!(after["ownerReferences"], before["ownerReferences"]);
            let running = sim.pods_now().iter().filter(|p| p.ends_with("Running")).count();
            // Without one of the services no pods are created, because they could not find each other.
            let is_right = if plural == "pods" {
                running >= 3
            } else {
                running == 0
            };
            assert!(is_right, "{case}: {:?}", sim.pods_now());
            assert!(remove(&sim, plural, "job-worker-0").await);
            sim.advance(400).await;
            settle_and_check(&mut sim).await;
            assert_eq!(sim.conditions("job"), "Created Running", "{case}");
        }
    }
}

/// Each attempt costs two calls for each name, even if the job changes meanwhile. Pods wait for their services. An edit of the spec triggers an attempt, because it may fix the cause.
#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_is_not_tried_at_each_event() {
    let mut sim = Simulation::new(|_, _| Runs);
    for replica in ["scheduler-0", "server-0", "worker-0", "worker-1"] {
        let name = format!("job-{replica}");
        make(&sim, "services", stranger("services", &name, &Value::Null)).await;
    }
    sim.create(train("job", &SMALL)).await;
    sim.advance(100).await;
    sim.network.take_calls();
    for touch in 0..10 {
        let annotations = json!({"metadata": {"annotations": {"touched": touch.to_string()}}});
        edit_job(&sim, annotations).await;
        sim.advance(10).await;
    }
    assert_eq!(sim.network.count("create", "pods"), 0);
    let tries = sim.network.count("create", "services");
    assert!(tries <= 4 * 3, "{tries} tries");
    // By now the backoff is several minutes.
    assert!(remove(&sim, "services", "job-worker-0").await);
    sim.network.take_calls();
    edit_job(&sim, policy(json!({"backoffLimit": 2}))).await;
    sim.advance(10).await;
    // The edit triggers an attempt for each name, and its failure the first retry of the three that are taken.
    let tries = sim.network.count("create", "services");
    assert_within(tries, 4..=7, "tries");
    for replica in ["scheduler-0", "server-0", "worker-1"] {
        assert!(remove(&sim, "services", &format!("job-{replica}")).await);
    }
    sim.advance(400).await;
    settle_and_check(&mut sim).await;
}

/// The job's pods take a minute to stop, and the job is created again immediately.
#[tokio::test(start_paused = true)]
async fn its_predecessors_pods_are_still_going() {
    let sim = sim_of(|_, _| NodeLost(100_000, 60), json!({})).await;
    sim.advance(10).await;
    sim.delete("job").await;
    sim.create(train("job", &SMALL)).await;
    sim.network.take_calls();
    sim.advance(30).await;
    assert!(
        sim.pods_now().iter().all(|p| p.ends_with('!')),
        "{:?}",
        sim.pods_now()
    );
    let tries = sim.network.count("create", "pods");
    assert!(
        tries <= 8,
        "{tries} tries in half a minute: the cache knows that the names are taken"
    );
    sim.advance(40).await;
    assert!(
        sim.pods_now().iter().all(|p| p.ends_with("Running")),
        "{:?}",
        sim.pods_now()
    );
    let failures = |sim: &Simulation| sim.events().iter().filter(|e| e.starts_with("Failed")).count();
    assert_eq!(failures(&sim), 0, "{:?}", sim.events());
    assert_eq!(sim.conditions("job"), "Created Running");
    assert_eq!(sim.status("job")["restartCount"], json!(null));
    // A finalizer keeps one of them for longer, which the job reports once.
    let keep = |on: &[&str]| json!({"metadata": {"finalizers": on}});
    edit(&sim, "pods", "job-worker-1", keep(&["a/b"])).await;
    sim.delete("job").await;
    sim.create(train("job", &SMALL)).await;
    sim.advance(600).await;
    assert_eq!(failures(&sim), 1, "{:?}", sim.events());
    edit(&sim, "pods", "job-worker-1", keep(&[])).await;
    sim.advance(10).await;
    assert_eq!(sim.conditions("job"), "Created Running");
    sim.assert_no_violations();
}

/// Pods are removed before the operator deletes them, and a job before the operator writes its status.
#[tokio::test(start_paused = true)]
async fn patched_objects_are_gone() {
    let mut sim = Simulation::new(succeeds);
    sim.create(train("job", &[("Scheduler", 1), ("Worker", 3)])).await;
    sim.advance(10).await;
    sim.network.fail_next("delete", "pods", 2, Slow(2_000, 0));
    edit_job(&sim, worker(json!({"replicas": 1}))).await;
    sim.advance(1).await;
    for pod in ["job-worker-1", "job-worker-2"] {
        assert!(remove(&sim, "pods", pod).await, "{pod}");
    }
    sim.advance(20).await;
    assert_eq!(sim.network.count("delete", "pods"), 4, "to be gone is success");
    assert_eq!(sim.pods_now().len(), 2);
    settle_and_check(&mut sim).await;

    let mut sim = Simulation::new(succeeds);
    let slow = |call: &Call| call.is("patch", "mxjobs/status").then_some(Slow(3_000, 0));
    sim.network.add_rule(slow);
    sim.create(train("job", &SMALL)).await;
    sim.advance(3).await;
    assert!(remove(&sim, "mxjobs", "job").await);
    sim.advance(60).await;
    let writes = sim.network.count("patch", "mxjobs/status");
    assert!(writes <= 1, "nothing is left to write to");
    assert_no_children(&sim, "");
    settle_and_check(&mut sim).await;
}

/// A pod is removed while the operator deletes it, and no watch delivers it. The next pod is created when the
/// response comes.
#[tokio::test(start_paused = true)]
async fn deleted_objects_are_gone_before_the_response() {
    let mut sim = Simulation::new(|name, attempt| match attempt {
        0 if name.ends_with("worker-0") => Fails(137, 10),
        _ => Runs,
    });
    let job = job::new(JobType::Train, "job", &[("Worker", 1)], "ExitCode");
    sim.create(job).await;
    sim.network.fail_next("delete", "pods", 1, Slow(2_000, 0));
    sim.advance(12).await;
    sim.cluster.freeze_watches(Some("pods"));
    assert!(remove(&sim, "pods", "job-worker-0").await);
    sim.advance(2).await;
    assert_eq!(created_and_deleted(&sim, "pods job-worker-0"), (2, 1));
    settle_and_check(&mut sim).await;
}
