//! Whose an object is.

use serde_json::{Value, json};
use training_job_simulation::job::{self, Kind};
use training_job_simulation::kubelet::Fate::{self, NodeLost, Runs, Succeeds};
use training_job_simulation::stream::Lag;
use training_job_simulation::users::Deed;
use training_job_simulation::world::{SMALL, Setup, World, train, with};

use crate::stage::{edit, ends_well, life, made, make, remove, rest, sound, told};

fn world(script: fn(&str, u32) -> Fate) -> World {
    let mut world = World::with(Setup {
        all_kinds: true,
        ..Setup::of(script)
    });
    world.start();
    world
}

/// A job is deleted and made again at once, at any moment of its life, and three times in a row; its pods take their time to go.
#[tokio::test(start_paused = true)]
async fn f1_a_job_is_made_again_under_its_name() {
    for at in [0, 1, 60, 101, 201] {
        for going in [false, true] {
            let slow: fn(&str, u32) -> Fate = |_, _| NodeLost(100_000, 45);
            let mut world = world(if going { slow } else { ends_well });
            world.create(train("job", &SMALL)).await;
            world.pass(at).await;
            for _ in 0..3 {
                world.delete("job").await;
                world.create(train("job", &SMALL)).await;
                tokio::time::sleep(std::time::Duration::from_millis(700)).await;
            }
            world.pass(100).await;
            let case = format!("after {at} s, pods that go slowly: {going}");
            let uid = world.stored("mxjobs", "job")["metadata"]["uid"].clone();
            for pod in world.cluster.list("pods", None) {
                assert_eq!(
                    pod.value()["metadata"]["ownerReferences"][0]["uid"],
                    uid,
                    "{case}"
                );
            }
            assert_eq!(world.status("job")["restartCount"], Value::Null, "{case}");
            assert_eq!(told(&world, "FailedCreatePod"), 0, "{case}");
            if going {
                assert_eq!(world.conditions("job"), "Created Running", "{case}");
                world.check();
            } else {
                rest(&mut world).await;
                assert!(world.conditions("job").ends_with("Succeeded"), "{case}");
            }
        }
    }
}

/// What watches tell of the first job's pods, and of itself, comes when the second is there.
#[test]
fn f2_old_news_come_after_the_new_job() {
    let script = |_: &str, _: u32| Succeeds(300);
    let mut again = life(
        "again",
        script,
        json!({}),
        vec![(20, Deed::Recreate(0)), (21, Deed::Recreate(0))],
    );
    for seed in 0..24 {
        again.scenario.settings.lag = Some(Lag {
            seed,
            most: 25_000,
            twice: 200,
        });
        let outcome = sound(&again.scenario, &seed.to_string());
        assert!(
            outcome.remains.contains("Succeeded"),
            "{seed}: {}",
            outcome.remains
        );
        assert!(
            !outcome.remains.contains("restartCount"),
            "{seed}: {}",
            outcome.remains
        );
    }
}

/// It is left to whoever took it: the name is missed, and told so once.
#[tokio::test(start_paused = true)]
async fn f3_the_owner_is_taken_off_a_pod_or_service() {
    for (plural, event) in [("pods", "FailedCreatePod"), ("services", "FailedCreateService")] {
        let mut world = world(|_, _| Runs);
        let one = json!({"runPolicy": {"restartScope": "Replica"}});
        world.create(with(train("job", &SMALL), one)).await;
        world.pass(10).await;
        let uid = world.stored(plural, "job-worker-1")["metadata"]["uid"].clone();
        edit(
            &world,
            plural,
            "job-worker-1",
            json!({"metadata": {"ownerReferences": null}}),
        )
        .await;
        world.pass(3_600).await;
        let after = world.stored(plural, "job-worker-1")["metadata"].clone();
        assert_eq!(
            (&after["uid"], &after["ownerReferences"]),
            (&uid, &Value::Null),
            "{plural}"
        );
        assert_eq!(told(&world, event), 1, "{plural}");
        assert!(remove(&world, plural, "job-worker-1").await);
        world.pass(400).await;
        rest(&mut world).await;
        assert_eq!(made(&world, &format!("{plural} job-worker-1")).0, 2, "{plural}");
    }
}

/// A reference to an owner.
fn owner(world: &World, plural: &str, name: &str) -> Value {
    let stored = world.stored(plural, name);
    json!({"apiVersion": stored["apiVersion"], "kind": stored["kind"], "name": name,
        "uid": stored["metadata"]["uid"], "controller": true})
}

/// A pod with all labels of the job's own.
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
async fn f4_a_pod_that_looks_like_the_jobs_is_anothers() {
    let mut world = world(|_, _| Runs);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "somebody"}, "spec": {"clusterIP": "None"}});
    make(&world, "services", service).await;
    make(
        &world,
        "tfjobs",
        job::of(Kind::Flow, "job", &[("Chief", 1)], "Never"),
    )
    .await;
    world.pass(10).await;
    let somebody = owner(&world, "services", "somebody");
    make(&world, "pods", pod("theirs", &[somebody])).await;
    make(&world, "pods", pod("nobodys", &[])).await;
    world.create(train("job", &SMALL)).await;
    world.pass(10).await;
    for phase in ["Failed", "Succeeded"] {
        for name in ["theirs", "nobodys"] {
            crate::stage::edit_status(&world, "pods", name, json!({"phase": phase})).await;
        }
    }
    world.pass(300).await;
    assert_eq!(world.conditions("job"), "Created Running");
    assert_eq!(
        world.status("job")["replicaStatuses"]["Worker"],
        json!({"active": 2})
    );
    world.delete("job").await;
    world.pass(60).await;
    for name in ["theirs", "nobodys"] {
        assert!(remove(&world, "pods", name).await, "{name} is left alone");
    }
    rest(&mut world).await;
}

#[tokio::test(start_paused = true)]
async fn f5_jobs_of_two_kinds_have_one_name() {
    let mut world = world(|_, _| Runs);
    // They differ in their roles but for the worker.
    make(
        &world,
        "tfjobs",
        job::of(Kind::Flow, "job", &[("Chief", 1), ("Worker", 2)], "Never"),
    )
    .await;
    world.pass(10).await;
    let before = world.stored("pods", "job-worker-0")["metadata"]["uid"].clone();
    world.create(train("job", &SMALL)).await;
    world.network.take();
    world.pass(3_600).await;
    assert_eq!(world.stored("pods", "job-worker-0")["metadata"]["uid"], before);
    assert_eq!(world.network.count("delete", ""), 0);
    let tries = world.network.count("create", "pods");
    assert!((10..80).contains(&tries), "{tries} tries in an hour");
    assert_eq!(told(&world, "FailedCreatePod"), 1);
    assert!(remove(&world, "tfjobs", "job").await);
    world.pass(400).await;
    rest(&mut world).await;
    assert_eq!(world.conditions("job"), "Created Running");
    assert_eq!(world.pods_now().len(), 4);
}

/// A second owner changes nothing; once the job's reference does not say that it controls the pod any more, the pod
/// is not the job's, until it says so again.
#[tokio::test(start_paused = true)]
async fn f6_a_pod_has_two_owners() {
    let mut world = world(|_, _| Runs);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "somebody"}, "spec": {"clusterIP": "None"}});
    make(&world, "services", service).await;
    let one = json!({"runPolicy": {"restartScope": "Replica"}});
    world.create(with(train("job", &SMALL), one)).await;
    world.pass(10).await;
    let ours = world.stored("pods", "job-worker-1")["metadata"]["ownerReferences"][0].clone();
    let mut theirs = owner(&world, "services", "somebody");
    theirs["controller"] = json!(false);
    let both = |ours: &Value| json!({"metadata": {"ownerReferences": [theirs.clone(), ours.clone()]}});
    edit(&world, "pods", "job-worker-1", both(&ours)).await;
    world.network.take();
    world.pass(300).await;
    assert!(world.network.take().iter().all(|c| c.verb == "watch"));
    let mut weak = ours.clone();
    weak["controller"] = json!(false);
    let uid = world.stored("pods", "job-worker-1")["metadata"]["uid"].clone();
    edit(&world, "pods", "job-worker-1", both(&weak)).await;
    world.pass(600).await;
    assert_eq!(
        world.status("job")["replicaStatuses"]["Worker"],
        json!({"active": 1})
    );
    assert_eq!(told(&world, "FailedCreatePod"), 1);
    edit(&world, "pods", "job-worker-1", both(&ours)).await;
    world.pass(400).await;
    rest(&mut world).await;
    assert_eq!(world.stored("pods", "job-worker-1")["metadata"]["uid"], uid);
    assert_eq!(
        world.status("job")["replicaStatuses"]["Worker"],
        json!({"active": 2})
    );
}

/// In another namespace somebody makes a pod that says the job is its owner. The garbage collector takes it for an orphan;
/// the job does not count it, whichever is first.
#[tokio::test(start_paused = true)]
async fn f7_an_owner_is_claimed_from_another_namespace() {
    let mut world = world(|_, _| Runs);
    world.create(train("job", &SMALL)).await;
    world.pass(10).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "away"}});
    let _ = crate::stage::call(&world, "POST", "/api/v1/namespaces", namespace).await;
    let ours = world.stored("pods", "job-worker-1")["metadata"]["ownerReferences"][0].clone();
    let path = "/api/v1/namespaces/away/pods";
    for name in ["job-worker-1", "job-worker-7"] {
        let mut forged = pod(name, std::slice::from_ref(&ours));
        forged["status"] = json!({"phase": "Failed"});
        crate::stage::call(&world, "POST", path, forged).await.unwrap();
        let failed = json!({"status": {"phase": "Failed", "containerStatuses": [{"name": "mxnet", "image": "i",
            "imageID": "i", "ready": false, "restartCount": 0, "state": {"terminated": {"exitCode": 1}}}]}});
        let _ = crate::stage::call(&world, "PATCH", &format!("{path}/{name}/status"), failed).await;
    }
    world.pass(60).await;
    assert_eq!(world.conditions("job"), "Created Running");
    assert_eq!(
        world.status("job")["replicaStatuses"]["Worker"],
        json!({"active": 2})
    );
    assert_eq!(world.network.count("delete", "pods"), 0);
    rest(&mut world).await;
}
