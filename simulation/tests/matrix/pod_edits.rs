//! Pods that users delete or change.

use serde_json::{Value, json};
use training_job_simulation::faults::CallFault::{Refused, Slow};
use training_job_simulation::faults::PodFate::{self, Fails, Runs, Succeeds};
use training_job_simulation::simulation::{SMALL, Simulation, train, with_spec};

use crate::harness::{created_and_deleted, edit, remove, settle_and_check};

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
                let mut sim = Simulation::new(ends_after_a_minute);
                let policy = json!({"runPolicy": {"restartScope": scope, "cleanPodPolicy": "None"}});
                sim.create(with_spec(train("job", &SMALL), policy)).await;
                sim.advance(at).await;
                tokio::time::sleep(std::time::Duration::from_millis(500)).await;
                if force {
                    assert!(remove(&sim, "pods", "job-worker-0").await);
                } else {
                    sim.delete_pod("job-worker-0").await;
                }
                settle_and_check(&mut sim).await;
                let case = format!("{phase}, scope {scope}, by force: {force}");
                assert!(
                    sim.conditions("job").ends_with("Succeeded"),
                    "{case}: {}",
                    sim.conditions("job")
                );
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
    let no_label = json!({"metadata": {"labels": {"training.kubeflow.org/operator-name": null}}});
    edit(&sim, "pods", "job-worker-0", no_label).await;
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
    assert!(sim.conditions("job").ends_with("Succeeded"));
    assert_eq!(created_and_deleted(&sim, "pods job-worker-0").0, 1);
}

/// Only a read shows that such a pod is gone. The objects that a job keeps while its pods run are deleted after that.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_pod_without_its_label_is_noticed() {
    let no_label = || json!({"metadata": {"labels": {"training.kubeflow.org/operator-name": null}}});
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
        edit(&sim, "pods", "job-worker-1", no_label()).await;
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
            let mut sim = Simulation::new(move |name, attempt| match attempt {
                0 if name.ends_with("worker-0") => Fails(code, 10),
                _ => ends_after_a_minute(name, attempt),
            });
            let policy = json!({"runPolicy": {"cleanPodPolicy": "None"}});
            sim.create(with_spec(train("job", &SMALL), policy)).await;
            while sim.stored("pods", "job-worker-0")["status"]["phase"] != "Failed" {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
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
                assert!(sim.conditions("job").ends_with("Failed"), "{case}");
                assert_eq!(created_and_deleted(&sim, "pods job-worker-0").0, 1, "{case}");
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
        let mut sim = Simulation::new(|_, _| Runs);
        sim.create(train("job", &SMALL)).await;
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
        assert_eq!(created_and_deleted(&sim, "pods job-worker-0").0, 1, "{change}");
        if orphaned {
            for pod in ["scheduler-0", "server-0", "worker-0", "worker-1"] {
                assert!(remove(&sim, "pods", &format!("job-{pod}")).await);
            }
        }
        settle_and_check(&mut sim).await;
        assert_eq!(sim.conditions("job"), "Created Running", "{change}");
    }
}

/// Names and owners identify the replica of a pod, not labels. A pod without the label of the watch is not observed.
/// It gets the label again when its name is needed.
#[tokio::test(start_paused = true)]
async fn labels_of_pods_and_services_are_edited() {
    let labels = [
        "operator-name",
        "job-name",
        "replica-type",
        "replica-index",
        "job-role",
    ];
    let values = [Value::Null, json!("2000000000")];
    for plural in ["pods", "services"] {
        for label in labels {
            for value in &values {
                let mut sim = Simulation::new(|_, _| Runs);
                let one = json!({"runPolicy": {"restartScope": "Replica"}});
                sim.create(with_spec(train("job", &SMALL), one)).await;
                sim.advance(10).await;
                let key = format!("training.kubeflow.org/{label}");
                let patch = json!({"metadata": {"labels": {&key: value}}});
                edit(&sim, plural, "job-worker-1", patch).await;
                settle_and_check(&mut sim).await;
                let case = format!("{plural} {label}={value}");
                let times = created_and_deleted(&sim, &format!("{plural} job-worker-1")).0;
                assert_eq!(times, 1, "{case}");
                if label == "operator-name" {
                    let labels = &sim.stored(plural, "job-worker-1")["metadata"]["labels"];
                    assert_eq!(labels[&key], "mxjob-controller", "{case}");
                }
                assert_eq!((sim.pods_now().len(), sim.services_now().len()), (4, 4), "{case}");
                assert!(sim.conditions("job").ends_with("Running"), "{case}");
            }
        }
    }
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
            assert!(sim.conditions(JOB).ends_with("Succeeded"), "{case}");
            assert_eq!(names(&sim, "configmaps"), [""; 0], "{case}: no pod runs any more");
        }
    }
}
