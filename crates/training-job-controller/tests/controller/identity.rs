//! Owners of objects: the job, a predecessor, or another owner.

use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, PropagationPolicy};
use serde_json::{Value, json};
use training_job_testbed::ToyJob;

use training_job_simulation::faults::CallFault;
use training_job_simulation::faults::PodFate::Runs;
use training_job_simulation::simulation::{SMALL, Simulation, with_spec};

use crate::toys::{simulate, toy_job, without_operator};

/// Merges a patch into a pod.
async fn edit_pod(sim: &Simulation, name: &str, patch: Value) {
    let patch = Patch::Merge(patch);
    sim.pods()
        .patch(name, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

fn foreign_pod(name: &str) -> k8s_openapi::api::core::v1::Pod {
    serde_json::from_value(json!({
        "metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]},
    }))
    .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_foreign_pod_is_not_changed_and_reported_once() {
    let sim = simulate(|_, _| Runs);
    sim.pods()
        .create(&PostParams::default(), &foreign_pod("job-worker-0"))
        .await
        .unwrap();
    sim.create(toy_job("job", &SMALL)).await;
    sim.advance(3_600).await;
    assert_eq!(sim.pods_now().len(), 4);
    assert!(sim.stored("pods", "job-worker-0")["metadata"]["ownerReferences"].is_null());
    let warnings = sim.events().iter().filter(|e| *e == "FailedCreatePod").count();
    assert_eq!(warnings, 1);
    let created = sim
        .events()
        .iter()
        .filter(|e| *e == "SuccessfulCreatePod")
        .count();
    assert_eq!(created, 1, "all others are made in one pass");
    let tries = sim.network.count("create", "pods");
    assert!(tries < 40, "{tries} creates in an hour");
    sim.delete_pod("job-worker-0").await;
    sim.advance(400).await;
    assert!(!sim.stored("pods", "job-worker-0")["metadata"]["ownerReferences"].is_null());
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_job_with_the_name_of_a_deleted_job_waits_for_its_pods_and_reports_long_waits() {
    let sim = simulate(|_, _| Runs);
    sim.create(toy_job("job", &SMALL)).await;
    sim.advance(5).await;
    let keep = |on: bool| json!({"metadata": {"finalizers": if on { json!(["a/b"]) } else { json!([]) }}});
    edit_pod(&sim, "job-worker-1", keep(true)).await;
    sim.delete("job").await;
    sim.create(toy_job("job", &SMALL)).await;
    sim.network.take_calls();
    let failures = || -> Vec<String> {
        let mut events = sim.events();
        events.retain(|event| event.starts_with("Failed"));
        events
    };
    sim.advance(60).await;
    assert_eq!(failures(), [""; 0]);
    sim.advance(540).await;
    assert!(
        sim.network.count("create", "pods") < 10,
        "the cache knows that the name is taken"
    );
    assert_eq!(failures(), ["FailedCreatePod"]);
    edit_pod(&sim, "job-worker-1", keep(false)).await;
    sim.advance(2).await;
    assert_eq!(sim.pods_now().iter().filter(|p| !p.ends_with('!')).count(), 4);
    sim.advance(10).await;
    assert_eq!(sim.conditions("job"), "Created Running");
    assert_eq!(sim.status("job")["replicaStatuses"]["Worker"]["active"], 2);
    assert_eq!(sim.status("job")["restartCount"], json!(null));
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn jobs_of_one_name_in_two_namespaces_do_not_touch_each_other() {
    let sim = simulate(|_, _| Runs);
    sim.create(toy_job("job", &SMALL)).await;
    sim.advance(5).await;
    let mut elsewhere = toy_job("job", &SMALL);
    elsewhere["metadata"]["namespace"] = json!("elsewhere");
    let namespace = serde_json::from_value(json!({"metadata": {"name": "elsewhere"}})).unwrap();
    let namespaces: Api<Namespace> = Api::all(sim.user.clone());
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    let elsewhere: ToyJob = serde_json::from_value(elsewhere).unwrap();
    let jobs: Api<ToyJob> = Api::namespaced(sim.user.clone(), "elsewhere");
    jobs.create(&PostParams::default(), &elsewhere).await.unwrap();
    sim.advance(60).await;
    assert_eq!(sim.pods_now().len(), 8, "{:?}", sim.pods_now());
    for namespace in ["default", "elsewhere"] {
        let job = sim.cluster.get("toyjobs", namespace, "job").unwrap();
        assert_eq!(
            job.value()["status"]["replicaStatuses"]["Worker"]["active"],
            2,
            "{namespace}"
        );
    }
    jobs.delete("job", &DeleteParams::background()).await.unwrap();
    sim.advance(60).await;
    assert_eq!(sim.pods_now().len(), 4, "those of the other stay");
    assert_eq!(sim.conditions("job"), "Created Running");
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn pods_that_an_orphaning_deletion_left_are_not_ours() {
    let sim = simulate(|_, _| Runs);
    sim.create(toy_job("job", &SMALL)).await;
    sim.advance(5).await;
    let orphan = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Orphan),
        ..DeleteParams::default()
    };
    sim.jobs().delete("job", &orphan).await.unwrap();
    sim.advance(5).await;
    let left = sim.pods_now();
    assert_eq!(left.len(), 4);
    sim.create(toy_job("job", &SMALL)).await;
    sim.advance(60).await;
    assert_eq!(sim.pods_now(), left);
    sim.assert_no_violations();
}

const OPERATOR_NAME: &str = "training.kubeflow.org/operator-name";

fn in_scope(scope: &str) -> Value {
    let spec = json!({"runPolicy": {"restartScope": scope}});
    with_spec(toy_job("job", &SMALL), spec)
}

fn count(sim: &Simulation, reason: &str) -> usize {
    sim.events().iter().filter(|event| *event == reason).count()
}

#[tokio::test(start_paused = true)]
async fn labels_that_another_client_changes_are_restored_and_restart_nothing() {
    for scope in ["Replica", "Role", "Job"] {
        for labels in [
            json!({OPERATOR_NAME: null}),
            json!({OPERATOR_NAME: "x"}),
            json!({"training.kubeflow.org/job-name": "x"}),
            json!({"training.kubeflow.org/replica-index": null}),
            Value::Null,
        ] {
            let sim = simulate(|_, _| Runs);
            sim.create(in_scope(scope)).await;
            sim.advance(10).await;
            let before = sim.stored("pods", "job-worker-1")["metadata"].clone();
            edit_pod(&sim, "job-worker-1", json!({"metadata": {"labels": labels}})).await;
            sim.advance(5).await;
            let case = format!("{scope} {labels}");
            let after = &sim.stored("pods", "job-worker-1")["metadata"];
            assert_eq!(after["uid"], before["uid"], "{case}");
            assert_eq!(after["labels"], before["labels"], "{case}");
            assert_eq!(sim.pods_now().len(), 4, "{case}: {:?}", sim.pods_now());
            let told = ["PodLabelsChanged", "SuccessfulAdoptPod"].map(|reason| count(&sim, reason));
            assert_eq!(told.iter().sum::<usize>(), 1, "{case}: {:?}", sim.events());
            sim.network.take_calls();
            sim.advance(600).await;
            let mut calls = sim.network.take_calls().into_iter();
            assert!(calls.all(|call| call.verb == "watch"), "{case}");
            assert!(sim.conditions("job").ends_with("Running"), "{case}");
            assert_eq!(sim.status("job")["restartCount"], json!(null), "{case}");
            sim.assert_no_violations();
        }
    }
}

/// The label is taken off while no operator watches, so its first list lacks the pod.
#[tokio::test(start_paused = true)]
async fn a_pod_that_a_list_lacks_is_read_before_it_counts_as_lost() {
    let mut sim = simulate(|_, _| Runs);
    sim.create(in_scope("Job")).await;
    sim.advance(10).await;
    sim.kill().await;
    edit_pod(&sim, "job-worker-1", json!({"metadata": {"labels": null}})).await;
    let before = sim.pods_now();
    sim.start();
    sim.advance(60).await;
    assert_eq!(sim.pods_now(), before);
    assert_eq!(sim.status("job")["restartCount"], json!(null));
    assert_eq!(sim.network.count("get", "pods"), 1);
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_gone_without_a_grace_period_is_lost() {
    let sim = simulate(|_, _| Runs);
    sim.create(in_scope("Job")).await;
    sim.advance(10).await;
    let now = DeleteParams::default().grace_period(0);
    sim.pods().delete("job-worker-1", &now).await.unwrap();
    sim.advance(60).await;
    assert_eq!(sim.status("job")["restartCount"], 1);
    assert_eq!(sim.network.count("get", "pods"), 1);
    sim.assert_no_violations();
}

/// A client that takes the label off again and again is answered ever more rarely, and the pod's end is still seen.
#[tokio::test(start_paused = true)]
async fn two_clients_that_want_other_labels_do_not_fight_forever() {
    for scope in ["Replica", "Job"] {
        let sim = simulate(|name, _| match name {
            "job-worker-1" => training_job_simulation::faults::PodFate::Succeeds(3_000),
            _ => Runs,
        });
        sim.create(in_scope(scope)).await;
        sim.advance(10).await;
        let uid = sim.stored("pods", "job-worker-1")["metadata"]["uid"].clone();
        for _ in 0..2_900 {
            edit_pod(
                &sim,
                "job-worker-1",
                json!({"metadata": {"labels": {OPERATOR_NAME: null}}}),
            )
            .await;
            sim.advance(1).await;
        }
        let patches = sim.network.count("patch", "pods");
        assert!(patches < 30, "{scope}: {patches} patches in 48 minutes");
        assert_eq!(
            sim.stored("pods", "job-worker-1")["metadata"]["uid"],
            uid,
            "{scope}"
        );
        assert_eq!(sim.status("job")["restartCount"], json!(null), "{scope}");
        sim.advance(400).await;
        let succeeded = &sim.status("job")["replicaStatuses"]["Worker"]["succeeded"];
        assert_eq!(*succeeded, 1, "{scope}");
        sim.assert_no_violations();
    }
}

/// Objects of another operator have other labels. Their services must also select later pods.
#[tokio::test(start_paused = true)]
async fn objects_of_another_operator_for_the_same_job_are_adopted() {
    let mut sim = simulate(|_, _| Runs);
    sim.create(toy_job("job", &SMALL)).await;
    sim.advance(10).await;
    sim.kill().await;
    let names = ["job-scheduler-0", "job-server-0", "job-worker-0", "job-worker-1"];
    let both = |sim: &Simulation| -> Vec<Value> {
        let kinds = ["pods", "services"].into_iter();
        let all = kinds.flat_map(|kind| names.iter().map(move |name| (kind, *name)));
        all.map(|(kind, name)| sim.stored(kind, name)).collect()
    };
    let before = both(&sim);
    let services: Api<Service> = Api::namespaced(sim.user.clone(), "default");
    for name in &names {
        let old = |with_ours: bool| {
            let mut labels = json!({"group-name": "kubeflow.org", "job-name": "job", "replica": name});
            for key in [
                "operator-name",
                "job-name",
                "replica-type",
                "replica-index",
                "job-role",
            ] {
                if with_ours {
                    labels[format!("training.kubeflow.org/{key}")] = Value::Null;
                }
            }
            labels
        };
        let labels = json!({"metadata": {"labels": old(true)}});
        edit_pod(&sim, name, labels.clone()).await;
        let mut service = labels;
        service["spec"] = json!({"selector": old(true)});
        services
            .patch(name, &PatchParams::default(), &Patch::Merge(service))
            .await
            .unwrap();
        assert_eq!(sim.stored("services", name)["spec"]["selector"], old(false));
    }
    // Another operator does not record restarts.
    let status = Patch::Merge(json!({"status": {"recovery": null}}));
    sim.jobs()
        .patch_status("job", &PatchParams::default(), &status)
        .await
        .unwrap();
    sim.start();
    sim.advance(60).await;
    for (before, after) in before.iter().zip(both(&sim)) {
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
        assert_eq!(
            after["spec"]["selector"], before["spec"]["selector"],
            "no old label is left in it"
        );
        assert_eq!(
            after["metadata"]["labels"]["group-name"], "kubeflow.org",
            "others stay"
        );
        for (key, value) in before["metadata"]["labels"].as_object().unwrap() {
            assert_eq!(&after["metadata"]["labels"][key], value, "{key}");
        }
    }
    assert_eq!(sim.pods_now().len(), names.len(), "{:?}", sim.pods_now());
    assert!(sim.conditions("job").ends_with("Running"));
    assert_eq!(sim.status("job")["restartCount"], json!(null));
    let told = |reason: &str| sim.events().iter().filter(|e| *e == reason).count();
    assert_eq!(
        (told("SuccessfulAdoptPod"), told("SuccessfulAdoptService")),
        (1, 1)
    );
    assert_eq!(told("SuccessfulCreatePod"), 1, "the first operator's");
    sim.assert_no_violations();
}

/// An object that changes between the read and the patch is read again.
#[tokio::test(start_paused = true)]
async fn an_adoption_names_the_uid_and_version_that_was_read() {
    let mut sim = simulate(|_, _| Runs);
    let one = json!({"runPolicy": {"restartScope": "Replica"}});
    sim.create(with_spec(toy_job("job", &SMALL), one)).await;
    sim.advance(10).await;
    sim.kill().await;
    let label =
        |value: Value| json!({"metadata": {"labels": {"training.kubeflow.org/operator-name": value}}});
    edit_pod(&sim, "job-worker-1", label(Value::Null)).await;
    sim.network
        .fail_next("patch", "pods", 1, CallFault::Slow(1_000, 0));
    sim.start();
    while sim.network.count("get", "pods") == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    let labels = json!({"metadata": {"ownerReferences": null}});
    edit_pod(&sim, "job-worker-1", labels).await;
    sim.advance(60).await;
    assert_eq!(sim.network.count("patch", "pods"), 1, "it was tried");
    let label =
        &sim.stored("pods", "job-worker-1")["metadata"]["labels"]["training.kubeflow.org/operator-name"];
    assert!(label.is_null(), "it is nobody's now: {label}");
    sim.assert_no_violations();
}

/// The pod is released on purpose, and its name is taken: a restart could not replace it.
#[tokio::test(start_paused = true)]
async fn a_pod_without_its_owner_reference_restarts_nothing() {
    for (scope, told) in [("Replica", "FailedCreatePod"), ("Job", "PodNotControlled")] {
        let sim = simulate(|_, _| Runs);
        sim.create(in_scope(scope)).await;
        sim.advance(10).await;
        let before = sim.pods_now();
        edit_pod(
            &sim,
            "job-worker-1",
            json!({"metadata": {"ownerReferences": null}}),
        )
        .await;
        sim.network.take_calls();
        sim.advance(600).await;
        assert_eq!(sim.pods_now(), before, "{scope}");
        assert!(sim.stored("pods", "job-worker-1")["metadata"]["ownerReferences"].is_null());
        assert_eq!(sim.status("job")["restartCount"], json!(null), "{scope}");
        assert_eq!(count(&sim, told), 1, "{scope}: {:?}", sim.events());
        let calls = sim
            .network
            .take_calls()
            .into_iter()
            .filter(|call| call.verb != "watch");
        assert!(calls.count() < 80, "{scope}");
        sim.delete_pod("job-worker-1").await;
        sim.advance(400).await;
        assert_eq!(sim.pods_now().len(), 4, "{scope}");
        assert_eq!(sim.status("job")["restartCount"] == 1, scope == "Job", "{scope}");
        sim.assert_no_violations();
    }
}

#[tokio::test(start_paused = true)]
async fn a_terminating_pod_of_ours_is_not_taken_for_a_new_one() {
    let mut sim = simulate(|_, _| Runs);
    let job = with_spec(
        toy_job("job", &SMALL),
        json!({"runPolicy": {"restartScope": "Replica"}}),
    );
    sim.create(job).await;
    sim.advance(10).await;
    sim.delete_pod("job-worker-1").await;
    sim.kill().await;
    sim.start();
    sim.advance(20).await;
    assert_eq!(sim.pods_now().len(), 4);
    assert!(
        sim.pods_now().iter().all(|p| p.ends_with("Running")),
        "{:?}",
        sim.pods_now()
    );
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_job_that_a_finalizer_keeps_gets_no_new_pods() {
    let sim = simulate(|_, _| Runs);
    let mut job = toy_job("job", &SMALL);
    job["metadata"]["finalizers"] = json!(["a/b"]);
    sim.create(job).await;
    sim.advance(5).await;
    sim.delete("job").await;
    sim.delete_pod("job-worker-0").await;
    sim.network.take_calls();
    sim.advance(600).await;
    assert!(sim.network.take_calls().iter().all(|c| c.verb == "watch"));
    assert_eq!(sim.pods_now().len(), 3);
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn an_invalid_job_that_a_finalizer_keeps_is_left_alone() {
    let mut sim = without_operator(|_, _| Runs);
    let mut job = toy_job("job", &[("Worker", -1)]);
    job["metadata"]["finalizers"] = json!(["a/b"]);
    sim.create(job).await;
    sim.delete("job").await;
    sim.start();
    sim.advance(600).await;
    assert!(sim.network.take_calls().iter().all(|c| !c.writes()));
    sim.assert_no_violations();
}
