//! Whose an object is: ours, a predecessor's, somebody else's.

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, PropagationPolicy};
use serde_json::{Value, json};
use training_job_mxnet::MXJob;

use training_job_simulation::faults::PodFate::Runs;
use training_job_simulation::simulation::{SMALL, Simulation, train, with_spec};

/// Merges `patch` into a pod.
async fn edit_pod(world: &Simulation, name: &str, patch: Value) {
    let patch = Patch::Merge(patch);
    world
        .pods()
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
async fn a_foreign_pod_is_left_alone_and_told_of_once() {
    let world = Simulation::new(|_, _| Runs);
    world
        .pods()
        .create(&PostParams::default(), &foreign_pod("job-worker-0"))
        .await
        .unwrap();
    world.create(train("job", &SMALL)).await;
    world.advance(3_600).await;
    assert_eq!(world.pods_now().len(), 4);
    assert!(world.stored("pods", "job-worker-0")["metadata"]["ownerReferences"].is_null());
    let told = world.events().iter().filter(|e| *e == "FailedCreatePod").count();
    assert_eq!(told, 1);
    let tries = world.network.count("create", "pods");
    assert!(tries < 40, "{tries} creates in an hour");
    world.delete_pod("job-worker-0").await;
    world.advance(400).await;
    assert!(!world.stored("pods", "job-worker-0")["metadata"]["ownerReferences"].is_null());
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_job_under_an_old_name_waits_for_the_old_pods_quietly() {
    let world = Simulation::new(|_, _| Runs);
    world.create(train("job", &SMALL)).await;
    world.advance(5).await;
    let keep = |on: bool| json!({"metadata": {"finalizers": if on { json!(["a/b"]) } else { json!([]) }}});
    edit_pod(&world, "job-worker-1", keep(true)).await;
    world.delete("job").await;
    world.create(train("job", &SMALL)).await;
    world.network.take_calls();
    world.advance(600).await;
    assert!(
        world.network.count("create", "pods") < 10,
        "the cache knows that the name is taken"
    );
    assert!(
        world.events().iter().all(|e| !e.starts_with("Failed")),
        "{:?}",
        world.events()
    );
    edit_pod(&world, "job-worker-1", keep(false)).await;
    world.advance(2).await;
    assert_eq!(world.pods_now().iter().filter(|p| !p.ends_with('!')).count(), 4);
    world.advance(10).await;
    assert_eq!(world.conditions("job"), "Created Running");
    assert_eq!(world.status("job")["replicaStatuses"]["Worker"]["active"], 2);
    assert_eq!(world.status("job")["restartCount"], json!(null));
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn jobs_of_one_name_in_two_namespaces_do_not_touch_each_other() {
    let world = Simulation::new(|_, _| Runs);
    world.create(train("job", &SMALL)).await;
    world.advance(5).await;
    let mut elsewhere = train("job", &SMALL);
    elsewhere["metadata"]["namespace"] = json!("elsewhere");
    let namespace = serde_json::from_value(json!({"metadata": {"name": "elsewhere"}})).unwrap();
    let namespaces: Api<Namespace> = Api::all(world.user.clone());
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    let elsewhere: MXJob = serde_json::from_value(elsewhere).unwrap();
    let jobs: Api<MXJob> = Api::namespaced(world.user.clone(), "elsewhere");
    jobs.create(&PostParams::default(), &elsewhere).await.unwrap();
    world.advance(60).await;
    assert_eq!(world.pods_now().len(), 8, "{:?}", world.pods_now());
    for namespace in ["default", "elsewhere"] {
        let job = world.cluster.get("mxjobs", namespace, "job").unwrap();
        assert_eq!(
            job.value()["status"]["replicaStatuses"]["Worker"]["active"],
            2,
            "{namespace}"
        );
    }
    jobs.delete("job", &DeleteParams::background()).await.unwrap();
    world.advance(60).await;
    assert_eq!(world.pods_now().len(), 4, "those of the other stay");
    assert_eq!(world.conditions("job"), "Created Running");
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn pods_that_an_orphaning_deletion_left_are_not_ours() {
    let world = Simulation::new(|_, _| Runs);
    world.create(train("job", &SMALL)).await;
    world.advance(5).await;
    let orphan = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Orphan),
        ..DeleteParams::default()
    };
    world.jobs().delete("job", &orphan).await.unwrap();
    world.advance(5).await;
    let left = world.pods_now();
    assert_eq!(left.len(), 4);
    world.create(train("job", &SMALL)).await;
    world.advance(60).await;
    assert_eq!(world.pods_now(), left);
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_label_is_taken_off_is_replaced_and_all_comes_to_rest() {
    for scope in ["Replica", "Job"] {
        let world = Simulation::new(|_, _| Runs);
        let job = with_spec(
            train("job", &SMALL),
            json!({"runPolicy": {"restartScope": scope}}),
        );
        world.create(job).await;
        world.advance(10).await;
        let labels = json!({"metadata": {"labels": {"training.kubeflow.org/operator-name": null}}});
        edit_pod(&world, "job-worker-1", labels).await;
        world.advance(300).await;
        assert_eq!(world.pods_now().len(), 4, "{scope}: {:?}", world.pods_now());
        assert!(
            world.conditions("job").ends_with("Running"),
            "{scope}: {}",
            world.conditions("job")
        );
        assert_eq!(
            world.status("job")["replicaStatuses"]["Worker"]["active"],
            2,
            "{scope}"
        );
        world.network.take_calls();
        world.advance(600).await;
        assert!(
            world.network.take_calls().iter().all(|c| c.verb == "watch"),
            "{scope}"
        );
        world.assert_no_violations();
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_owner_is_taken_off_is_nobodys() {
    let world = Simulation::new(|_, _| Runs);
    let job = with_spec(
        train("job", &SMALL),
        json!({"runPolicy": {"restartScope": "Replica"}}),
    );
    world.create(job).await;
    world.advance(10).await;
    edit_pod(
        &world,
        "job-worker-1",
        json!({"metadata": {"ownerReferences": null}}),
    )
    .await;
    world.advance(600).await;
    assert_eq!(world.pods_now().len(), 4);
    assert!(world.stored("pods", "job-worker-1")["metadata"]["ownerReferences"].is_null());
    let tries = world.network.count("create", "pods");
    assert!(tries < 20, "{tries}");
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_terminating_pod_of_ours_is_not_taken_for_a_new_one() {
    let mut world = Simulation::new(|_, _| Runs);
    let job = with_spec(
        train("job", &SMALL),
        json!({"runPolicy": {"restartScope": "Replica"}}),
    );
    world.create(job).await;
    world.advance(10).await;
    world.delete_pod("job-worker-1").await;
    world.kill().await;
    world.start();
    world.advance(20).await;
    assert_eq!(world.pods_now().len(), 4);
    assert!(
        world.pods_now().iter().all(|p| p.ends_with("Running")),
        "{:?}",
        world.pods_now()
    );
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_job_that_a_finalizer_keeps_gets_no_new_pods() {
    let world = Simulation::new(|_, _| Runs);
    let mut job = train("job", &SMALL);
    job["metadata"]["finalizers"] = json!(["a/b"]);
    world.create(job).await;
    world.advance(5).await;
    world.delete("job").await;
    world.delete_pod("job-worker-0").await;
    world.network.take_calls();
    world.advance(600).await;
    assert!(world.network.take_calls().iter().all(|c| c.verb == "watch"));
    assert_eq!(world.pods_now().len(), 3);
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn an_invalid_job_that_a_finalizer_keeps_is_left_alone() {
    let mut world = Simulation::without_operator(|_, _| Runs);
    let mut job = train("job", &[("Worker", -1)]);
    job["metadata"]["finalizers"] = json!(["a/b"]);
    world.create(job).await;
    world.delete("job").await;
    world.start();
    world.advance(600).await;
    assert!(world.network.take_calls().iter().all(|c| !c.writes()));
    world.assert_no_violations();
}
