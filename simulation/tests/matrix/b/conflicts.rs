//! Something is there already, or not any more.

use serde_json::{Value, json};
use training_job_simulation::fault::Fault::{Garbled, Refused, ResetAfter, Slow, Unanswered};
use training_job_simulation::invariants::Patience;
use training_job_simulation::job::{self, Kind};
use training_job_simulation::kubelet::Fate::{Fails, NodeLost, Runs};
use training_job_simulation::world::{SMALL, Setup, World, train, with};

use crate::stage::{edit, ends_well, everywhere, made, make, remove, rest, restart, told, worker};

/// Somebody labels the job while each status is on its way, so that the API server refuses it.
#[tokio::test(start_paused = true)]
async fn b1_the_job_changes_while_its_status_is_on_its_way() {
    let mut world = World::new(ends_well);
    world.create(train("job", &SMALL)).await;
    world
        .network
        .rule(|call| call.is("patch", "mxjobs/status").then_some(Slow(1_000, 0)));
    for number in 0..500 {
        let label = json!({"metadata": {"labels": {"n": number.to_string()}}});
        edit(&world, "mxjobs", "job", label).await;
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
    assert_eq!(world.network.count("list", "mxjobs"), 1, "the watch tells why");
    let tries = world.network.count("patch", "mxjobs/status");
    assert!(
        (5..=250).contains(&tries),
        "{tries} tries: one for each change is enough"
    );
    assert_eq!(world.conditions("job"), "", "each of them was refused");
    rest(&mut world).await;
    // When it could at last be told, it had ended, and had run before.
    assert_eq!(world.conditions("job"), "Created Succeeded");
    assert_eq!(told(&world, "MXJobSucceeded"), 1);
    assert!(!world.status("job")["startTime"].is_null());
}

/// Of the change that a refusal is due to, no watch tells: it is asked for.
#[tokio::test(start_paused = true)]
async fn b1_the_job_has_changed_and_nothing_tells() {
    let mut world = World::new(ends_well);
    world.create(train("job", &SMALL)).await;
    world.pass(100).await;
    world.cluster.freeze_watches(Some("mxjobs"));
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    edit(&world, "mxjobs", "job", label).await;
    world.network.take();
    // The workers end.
    world.pass(50).await;
    assert_eq!(world.network.count("patch", "mxjobs/status"), 2);
    assert_eq!(world.network.count("list", "mxjobs"), 1);
    let workers = &world.status("job")["replicaStatuses"]["Worker"];
    assert_eq!(workers["succeeded"], 2);
    rest(&mut world).await;
}

#[test]
fn b1_any_status_is_refused_once() {
    let status = |site: &training_job_simulation::fault::Site| site.calls.ends_with("/status");
    let faults = [Refused(409, "Conflict"), Garbled(409, "Conflict")];
    everywhere(&restart(), status, &faults);
}

/// Answers are lost, and watches tell of nothing: all that the operator hears of what it has made is that the
/// name is taken.
#[tokio::test(start_paused = true)]
async fn b2_what_it_has_made_is_there_already() {
    for fault in [ResetAfter, Unanswered] {
        let mut world = World::new(ends_well);
        world.pass(5).await;
        world.network.fault("create", "pods", 4, fault.clone());
        world.network.fault("create", "services", 4, fault.clone());
        world.cluster.freeze_watches(Some("pods"));
        world.cluster.freeze_watches(Some("services"));
        world.create(train("job", &SMALL)).await;
        world.pass(100).await;
        assert!(world.network.count("create", "pods") > 4, "{fault:?}");
        assert_eq!(world.network.count("delete", ""), 0, "{fault:?}");
        for kind in ["pods", "services"] {
            assert_eq!(
                made(&world, &format!("{kind} job-worker-1")),
                (1, 0),
                "{fault:?}: {kind}"
            );
        }
        rest(&mut world).await;
        assert!(world.conditions("job").ends_with("Succeeded"), "{fault:?}");
        assert!(told(&world, "FailedCreatePod") <= 1, "{fault:?}");
    }
}

/// It was made by a call whose answer was lost, no watch tells of it, and somebody deletes it, which takes a minute.
#[tokio::test(start_paused = true)]
async fn b2_what_it_has_made_is_there_and_is_going() {
    let world = World::new(|_, _| NodeLost(100_000, 60));
    world.pass(5).await;
    world.network.fault("create", "pods", 1, Unanswered);
    world.cluster.freeze_watches(Some("pods"));
    world.create(train("job", &[("Worker", 1)])).await;
    world.pass(10).await;
    world.delete_pod("job-worker-0").await;
    world.pass(50).await;
    assert!(world.network.count("create", "pods") > 1);
    assert_eq!(
        told(&world, "SuccessfulCreatePod"),
        0,
        "that pod is not the one it needs"
    );
    world.pass(100).await;
    assert_eq!(made(&world, "pods job-worker-0"), (2, 1));
    world.check();
}

/// An object of this name that is not the job's.
fn stranger(plural: &str, name: &str, owner: &Value) -> Value {
    let owners = if owner.is_null() {
        json!([])
    } else {
        json!([owner])
    };
    job::foreign(plural, &json!({"name": name, "ownerReferences": owners}))
}

/// The job says so by an event, not by a condition: it may be gone the next moment, and the other replicas run.
#[tokio::test(start_paused = true)]
async fn b3_a_strangers_object_has_the_name() {
    for plural in ["pods", "services"] {
        for kind in ["", "MXJob", "Service"] {
            let mut world = World::new(|_, _| Runs);
            let asleep = json!({"runPolicy": {"suspend": true}});
            world.create(with(train("other", &SMALL), asleep)).await;
            make(&world, "services", stranger("services", "other", &Value::Null)).await;
            let owner = match kind {
                "" => Value::Null,
                "MXJob" => json!({"apiVersion": "kubeflow.org/v1", "kind": kind, "name": "other",
                    "uid": world.stored("mxjobs", "other")["metadata"]["uid"], "controller": true}),
                _ => json!({"apiVersion": "v1", "kind": kind, "name": "other",
                    "uid": world.stored("services", "other")["metadata"]["uid"], "controller": true}),
            };
            make(&world, plural, stranger(plural, "job-worker-0", &owner)).await;
            let before = world.stored(plural, "job-worker-0")["metadata"].clone();
            world.create(train("job", &SMALL)).await;
            world.network.take();
            world.pass(3_600).await;
            let case = format!("{plural} of {kind:?}");
            let event = if plural == "pods" {
                "FailedCreatePod"
            } else {
                "FailedCreateService"
            };
            assert_eq!(told(&world, event), 1, "{case}");
            let tries = world.network.count("create", plural);
            assert!((10..40).contains(&tries), "{case}: {tries} tries in an hour");
            assert_eq!(world.network.count("delete", ""), 0, "{case}");
            let after = world.stored(plural, "job-worker-0")["metadata"].clone();
            assert_eq!(
                (&after["uid"], &after["ownerReferences"]),
                (&before["uid"], &before["ownerReferences"])
            );
            let running = world.pods_now().iter().filter(|p| p.ends_with("Running")).count();
            assert!(running >= 3, "{case}: {:?}", world.pods_now());
            assert!(remove(&world, plural, "job-worker-0").await);
            world.pass(400).await;
            rest(&mut world).await;
            assert_eq!(world.conditions("job"), "Created Running", "{case}");
        }
    }
}

/// Whatever happens to the job meanwhile: each try costs two calls for each name. What was not refused is made at once,
/// and an edit of the spec may be what mends it.
#[tokio::test(start_paused = true)]
async fn b3_a_name_that_is_taken_is_not_tried_at_each_event() {
    let mut world = World::new(|_, _| Runs);
    for replica in ["scheduler-0", "server-0", "worker-0", "worker-1"] {
        let name = format!("job-{replica}");
        make(&world, "services", stranger("services", &name, &Value::Null)).await;
    }
    world.create(train("job", &SMALL)).await;
    world.pass(100).await;
    world.network.take();
    for _ in 0..10 {
        world.delete_pod("job-worker-0").await;
        world.pass(10).await;
    }
    assert_eq!(
        world.network.count("create", "pods"),
        4 * 10,
        "restarts do not wait"
    );
    let tries = world.network.count("create", "services");
    assert!(tries <= 4 * 3, "{tries} tries");
    // The wait is minutes long by now.
    assert!(remove(&world, "services", "job-worker-0").await);
    world.network.take();
    edit(&world, "mxjobs", "job", worker(json!({"replicas": 3}))).await;
    world.pass(10).await;
    assert_eq!(world.network.count("create", "services"), 5);
    for replica in ["scheduler-0", "server-0", "worker-1"] {
        assert!(remove(&world, "services", &format!("job-{replica}")).await);
    }
    world.pass(400).await;
    rest(&mut world).await;
}

/// Its pods take a minute to go, and it is made again at once.
#[tokio::test(start_paused = true)]
async fn b4_its_predecessors_pods_are_still_going() {
    let world = World::new(|_, _| NodeLost(100_000, 60));
    world.create(train("job", &SMALL)).await;
    world.pass(10).await;
    world.delete("job").await;
    world.create(train("job", &SMALL)).await;
    world.network.take();
    world.pass(30).await;
    assert!(
        world.pods_now().iter().all(|p| p.ends_with('!')),
        "{:?}",
        world.pods_now()
    );
    let tries = world.network.count("create", "pods");
    assert!(
        tries <= 8,
        "{tries} tries in half a minute: the cache knows that the names are taken"
    );
    world.pass(40).await;
    assert!(
        world.pods_now().iter().all(|p| p.ends_with("Running")),
        "{:?}",
        world.pods_now()
    );
    assert!(
        world.events().iter().all(|e| !e.starts_with("Failed")),
        "{:?}",
        world.events()
    );
    assert_eq!(world.conditions("job"), "Created Running");
    assert_eq!(world.status("job")["restartCount"], json!(null));
    world.check();
}

/// Pods are gone before they can be deleted, and a job before its status can be written.
#[tokio::test(start_paused = true)]
async fn b13_what_it_writes_to_is_gone() {
    let mut world = World::new(ends_well);
    world
        .create(train("job", &[("Scheduler", 1), ("Worker", 3)]))
        .await;
    world.pass(10).await;
    world.network.fault("delete", "pods", 2, Slow(2_000, 0));
    edit(
        &world,
        "mxjobs",
        "job",
        crate::stage::worker(json!({"replicas": 1})),
    )
    .await;
    world.pass(1).await;
    for pod in ["job-worker-1", "job-worker-2"] {
        assert!(remove(&world, "pods", pod).await, "{pod}");
    }
    world.pass(20).await;
    assert_eq!(world.network.count("delete", "pods"), 2, "to be gone is success");
    assert_eq!(world.pods_now().len(), 2);
    rest(&mut world).await;

    for kind in [Kind::Train, Kind::Flow] {
        let mut world = World::with(Setup {
            all_kinds: true,
            patience: Patience {
                others: 60_000,
                own: 0,
            },
            ..Setup::of(ends_well)
        });
        world.start();
        let roles: &[(&str, i32)] = if kind == Kind::Train {
            &SMALL
        } else {
            &[("Chief", 1)]
        };
        let status = format!("{}/status", kind.plural());
        let slow = status.clone();
        world
            .network
            .rule(move |call| call.is("patch", &slow).then_some(Slow(3_000, 0)));
        make(
            &world,
            kind.plural(),
            training_job_simulation::job::of(kind, "job", roles, "Never"),
        )
        .await;
        world.pass(3).await;
        assert!(remove(&world, kind.plural(), "job").await);
        world.pass(60).await;
        assert!(
            world.network.count("patch", &status) <= 1,
            "nothing is left to write to"
        );
        assert!(world.pods_now().is_empty() && world.services_now().is_empty());
        rest(&mut world).await;
    }
}

/// A pod goes while it is being asked to, and no watch tells of it: the next one is made when the answer comes.
#[tokio::test(start_paused = true)]
async fn b13_what_it_deletes_is_gone_before_it_hears_of_it() {
    let mut world = World::new(|name, attempt| match attempt {
        0 if name.ends_with("worker-0") => Fails(137, 10),
        _ => Runs,
    });
    let job = job::of(Kind::Train, "job", &[("Worker", 1)], "ExitCode");
    world.create(job).await;
    world.network.fault("delete", "pods", 1, Slow(2_000, 0));
    world.pass(12).await;
    world.cluster.freeze_watches(Some("pods"));
    assert!(remove(&world, "pods", "job-worker-0").await);
    world.pass(2).await;
    assert_eq!(made(&world, "pods job-worker-0"), (2, 1));
    rest(&mut world).await;
}
