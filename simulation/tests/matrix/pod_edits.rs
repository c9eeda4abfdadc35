//! Pods that users delete or change.

use serde_json::{Value, json};
use training_job_simulation::faults::CallFault::{Refused, Slow};
use training_job_simulation::faults::PodFate::{self, Fails, Runs, Succeeds};
use training_job_simulation::simulation::{SMALL, Simulation, train, with_spec};

use crate::harness::{
    assert_ends, assert_made, assert_within, created_and_deleted, edit, either, event_count, remove,
    settle_and_check, sim_of, until,
};

fn ends_after_a_minute(name: &str, _: u32) -> PodFate {
    Succeeds(if name.contains("scheduler") { 90 } else { 60 })
}

/// A worker's pod is deleted, gracefully or not, while it waits, runs, has succeeded, has failed, and after the job's
/// end. It is created again while it has work to do.
#[tokio::test(start_paused = true)]
async fn a_pod_is_deleted_in_each_phase() {
    for scope in ["Replica", "Job"] {
        for force in [false, true] {
            for (phase, at) in [("Pending", 0), ("Running", 30), ("Succeeded", 65), ("ended", 120)] {
                let mut sim = sim_of(
                    ends_after_a_minute,
                    json!({"restartScope": scope, "cleanPodPolicy": "None"}),
                )
                .await;
                sim.advance(at).await;
                tokio::time::sleep(std::time::Duration::from_millis(500)).await;
                if force {
                    assert!(remove(&sim, "pods", "job-worker-0").await);
                } else {
                    sim.delete_pod("job-worker-0").await;
                }
                settle_and_check(&mut sim).await;
                let case = format!("{phase}, scope {scope}, by force: {force}");
                assert_ends(&sim, "job", "Succeeded", &case);
                let times = created_and_deleted(&sim, "pods job-worker-0").0;
                let again = matches!(phase, "Pending" | "Running");
                assert_eq!(times, if again { 2 } else { 1 }, "{case}");
                let others = created_and_deleted(&sim, "pods job-worker-1").0;
                // In its first second the job does not wait for the pod yet.
                let together = scope == "Job" && phase == "Running";
                assert_eq!(others, if together { 2 } else { 1 }, "{case}: the others");
            }
        }
    }
}

/// The watch has sent later changes of other pods when the pod without its label is read.
#[tokio::test(start_paused = true)]
async fn a_pod_without_its_label_is_found_while_others_change() {
    let mut sim = Simulation::new(ends_after_a_minute);
    sim.network
        .add_rule(|call| call.is("get", "pods").then_some(Slow(500, 500)));
    sim.create(train("job", &SMALL)).await;
    sim.advance(10).await;
    edit(&sim, "pods", "job-worker-0", without_label()).await;
    for number in 0..3 {
        let other = json!({"metadata": {"annotations": {"number": number.to_string()}}});
        edit(&sim, "pods", "job-worker-1", other).await;
        sim.advance(1).await;
    }
    sim.advance(20).await;
    let pod = sim.stored("pods", "job-worker-0");
    let label = &pod["metadata"]["labels"]["training.kubeflow.org/operator-name"];
    assert_eq!(label, "mxjob-controller");
    settle_and_check(&mut sim).await;
    assert_ends(&sim, "job", "Succeeded", "");
    assert_made(&sim, "pods job-worker-0", 1, "");
}

/// Only a read shows that such a pod is gone. The objects that a job keeps while its pods run are deleted after that.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_pod_without_its_label_is_noticed() {
    for next in ["Failed", "suspend", "recreate"] {
        let mut sim = Simulation::new(|name, attempt| match attempt {
            0 if name.ends_with("worker-0") => Fails(1, 20),
            _ => ends_after_a_minute(name, attempt),
        });
        // More replicas than fit into the pods' own environments.
        sim.create(train("job", &[("Scheduler", 1), ("Server", 1), ("Worker", 14)]))
            .await;
        sim.advance(10).await;
        // The label cannot be restored before the pod has to go.
        sim.network
            .add_rule(|call| call.is("patch", "pods").then_some(Refused(500, "InternalError")));
        edit(&sim, "pods", "job-worker-1", without_label()).await;
        sim.advance(5).await;
        match next {
            "suspend" => {
                sim.edit("job", json!({"spec": {"runPolicy": {"suspend": true}}}))
                    .await
            }
            "recreate" => {
                sim.delete("job").await;
                sim.advance(5).await;
                sim.create(train("job", &SMALL)).await;
            }
            _ => {}
        }
        sim.advance(120).await;
        settle_and_check(&mut sim).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_pod_is_deleted() {
    for force in [false, true] {
        // The moment between the failure and the replacement, and a moment long after the job has failed because of
        // it.
        for (code, wait) in [(137, 0), (1, 0), (1, 30)] {
            let mut sim = sim_of(
                move |name, attempt| match attempt {
                    0 if name.ends_with("worker-0") => Fails(code, 10),
                    _ => ends_after_a_minute(name, attempt),
                },
                json!({"cleanPodPolicy": "None"}),
            )
            .await;
            until(|| sim.stored("pods", "job-worker-0")["status"]["phase"] == "Failed").await;
            sim.advance(wait).await;
            if force {
                remove(&sim, "pods", "job-worker-0").await;
            } else {
                let _ = sim.pods().delete("job-worker-0", &Default::default()).await;
            }
            settle_and_check(&mut sim).await;
            let case = format!("{code}, after {wait} s, by force: {force}");
            let restarts = sim.status("job")["restartCount"].as_i64().unwrap_or(0);
            if wait > 0 {
                assert_ends(&sim, "job", "Failed", &case);
                assert_made(&sim, "pods job-worker-0", 1, &case);
            } else if sim.conditions("job").ends_with("Succeeded") {
                // Either the failure was observed, or it counts like the deletion of a running pod.
                assert_eq!(restarts, 1, "{case}");
            } else {
                assert_eq!((code, restarts), (1, 0), "{case}");
            }
        }
    }
}

/// Changes by an admission webhook to new pods are kept. A webhook that removes the owner creates pods that no job
/// controls. They are left alone, and the job reports that its names are taken.
#[tokio::test(start_paused = true)]
async fn pods_are_changed_as_they_are_made() {
    let changes = [
        json!({"metadata": {"labels": {"sidecar": "injected"}, "annotations": {"a": "b"}}}),
        json!({"metadata": {"finalizers": ["a/b"]}}),
        json!({"metadata": {"labels": {"training.kubeflow.org/job-name": "x", "training.kubeflow.org/replica-type": null}}}),
        json!({"metadata": {"ownerReferences": null}}),
    ];
    for change in changes {
        let mut sim = sim_of(|_, _| Runs, json!({})).await;
        // As soon as the pods are created.
        while sim.pods_now().len() < 4 {
            tokio::task::yield_now().await;
        }
        for pod in ["scheduler-0", "server-0", "worker-0", "worker-1"] {
            edit(&sim, "pods", &format!("job-{pod}"), change.clone()).await;
        }
        sim.advance(20).await;
        sim.network.take_calls();
        sim.advance(3_600).await;
        let writes = sim.network.take_calls().iter().filter(|c| c.writes()).count();
        let orphaned = change["metadata"].get("ownerReferences").is_some();
        assert!(
            writes <= if orphaned { 150 } else { 0 },
            "{change}: {writes} writes in an hour"
        );
        assert_made(&sim, "pods job-worker-0", 1, &change);
        if orphaned {
            for pod in ["scheduler-0", "server-0", "worker-0", "worker-1"] {
                assert!(remove(&sim, "pods", &format!("job-{pod}")).await);
            }
        }
        settle_and_check(&mut sim).await;
        assert_eq!(sim.conditions("job"), "Created Running", "{change}");
    }
}

/// Names and owners identify the replica of a pod, not labels. The watch does not select a pod without its label, so the
/// operator reads the pod by its name, even if the label was removed while no operator ran.
#[tokio::test(start_paused = true)]
async fn labels_that_a_client_changes_are_restored_and_restart_nothing() {
    let labels = ["operator-name", "job-name", "replica-type", "replica-index"];
    let keys = labels.map(|label| format!("training.kubeflow.org/{label}"));
    let values = [Value::Null, json!("2000000000")];
    let mut changes: Vec<Value> = values
        .iter()
        .flat_map(|value| keys.iter().map(move |key| json!({key: value})))
        .collect();
    changes.push(Value::Null);
    for (plural, scope) in [
        ("pods", "Replica"),
        ("pods", "Role"),
        ("pods", "Job"),
        ("services", "Job"),
    ] {
        for (change, down) in changes
            .iter()
            .flat_map(|change| [(change, false), (change, true)])
        {
            let case = format!("{plural}, scope {scope}, {change}, no operator runs: {down}");
            let mut sim = sim_of(|_, _| Runs, json!({"restartScope": scope})).await;
            sim.advance(10).await;
            let before = sim.stored(plural, "job-worker-1")["metadata"]["labels"].clone();
            if down {
                sim.kill().await;
            }
            edit(
                &sim,
                plural,
                "job-worker-1",
                json!({"metadata": {"labels": change}}),
            )
            .await;
            if down {
                sim.start();
            }
            sim.advance(5).await;
            let after = &sim.stored(plural, "job-worker-1")["metadata"]["labels"];
            if plural == "pods" {
                assert_eq!(*after, before, "{case}");
                let told = ["PodLabelsChanged", "SuccessfulAdoptPod"].map(|reason| event_count(&sim, reason));
                assert_eq!(told.iter().sum::<usize>(), 1, "{case}: {:?}", sim.events());
            } else {
                assert_eq!(after[&keys[0]], before[&keys[0]], "{case}");
            }
            settle_and_check(&mut sim).await;
            assert_made(&sim, &format!("{plural} job-worker-1"), 1, &case);
            assert_eq!((sim.pods_now().len(), sim.services_now().len()), (4, 4), "{case}");
            assert_ends(&sim, "job", "Running", &case);
            assert_eq!(sim.status("job")["restartCount"], Value::Null, "{case}");
        }
    }
}

/// Returns an edit that removes the label which the watch selects.
fn without_label() -> Value {
    json!({"metadata": {"labels": {"training.kubeflow.org/operator-name": null}}})
}

/// All of a compact job's pods need these objects. They are created again as long as pods may come, and no pod starts
/// without them.
#[tokio::test(start_paused = true)]
async fn the_service_or_the_map_of_a_compact_job_is_deleted() {
    const JOB: &str = "job-with-a-name-of-forty-characters-or-so";
    let names = |sim: &Simulation, plural: &str| -> Vec<String> {
        let objects = sim.cluster.list(plural, None).into_iter();
        let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        objects.map(|object| name(object.value())).collect()
    };
    for at in [0, 5, 65, 120] {
        for dies in [false, true] {
            let mut sim = Simulation::new(ends_after_a_minute);
            let policy = json!({"runPolicy": {"layout": "Compact", "restartScope": "Replica"}});
            let job = train(JOB, &[("Scheduler", 1), ("Worker", 14)]);
            sim.create(with_spec(job, policy)).await;
            sim.advance(at).await;
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            let case = format!("at {at} s, the operator dies: {dies}");
            let is_active = at < 90;
            let maps = names(&sim, "configmaps");
            assert_eq!(maps.len(), usize::from(is_active), "{case}");
            if dies {
                sim.kill().await;
            }
            for map in &maps {
                assert!(remove(&sim, "configmaps", map).await);
            }
            // After the end, completed pods stay, and keep the service.
            for (plural, name) in [("services", "hosts"), ("pods", "worker-3")] {
                assert!(remove(&sim, plural, &format!("{JOB}-{name}")).await, "{case}");
            }
            if dies {
                sim.start();
            }
            sim.advance(2).await;
            assert_eq!(names(&sim, "configmaps"), maps, "{case}: under the same name");
            assert_eq!(sim.services_now().len(), maps.len(), "{case}");
            settle_and_check(&mut sim).await;
            assert_ends(&sim, JOB, "Succeeded", &case);
            assert_eq!(names(&sim, "configmaps"), [""; 0], "{case}: no pod runs any more");
        }
    }
}

/// The garbage collector does so while a job is being deleted and the watch has not delivered that yet.
#[tokio::test(start_paused = true)]
async fn a_service_that_is_deleted_again_and_again_is_created_with_a_backoff() {
    let sim = sim_of(|_, _| Runs, json!({})).await;
    sim.advance(5).await;
    for _ in 0..6_000 {
        remove(&sim, "services", "job-worker-0").await;
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let made = created_and_deleted(&sim, "services job-worker-0").0;
    assert_within(made, 5..20, "times in a minute");
    sim.advance(20).await;
    assert_eq!(sim.services_now().len(), 4);
    // I9, objects created in vain, is the expected violation of this test.
    assert!(sim.monitor.violations().iter().all(|v| v.id == "I9"));
}

/// A client that takes the label off again and again is answered ever more rarely, and the pod's end is still observed.
#[tokio::test(start_paused = true)]
async fn a_label_that_another_client_removes_each_second_is_restored_with_a_backoff() {
    for scope in ["Replica", "Job"] {
        let policy = json!({"restartScope": scope});
        let sim = sim_of(|name, _| either(name, "worker-1", Succeeds(3_000), Runs), policy).await;
        sim.advance(10).await;
        for _ in 0..2_900 {
            edit(&sim, "pods", "job-worker-1", without_label()).await;
            sim.advance(1).await;
        }
        let patches = sim.network.count("patch", "pods");
        assert!(patches < 30, "{scope}: {patches} patches in 48 minutes");
        sim.advance(400).await;
        assert_made(&sim, "pods job-worker-1", 1, scope);
        assert_eq!(sim.status("job")["restartCount"], Value::Null, "{scope}");
        let succeeded = &sim.status("job")["replicaStatuses"]["Worker"]["succeeded"];
        assert_eq!(*succeeded, 1, "{scope}");
        sim.assert_no_violations();
    }
}
