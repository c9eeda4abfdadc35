//! Jobs that are edited while they run.

use serde_json::{Value, json};
use training_job_simulation::kubelet::Fate::{Runs, Succeeds};
use training_job_simulation::world::{SMALL, World, train, with};

use crate::stage::{edit, edit_status, ends_well, made, policy, rest, worker};

/// Each edit, at each of the moments of a job's making, and when it runs: rest says that what is there is what the
/// spec asks for.
#[tokio::test(start_paused = true)]
async fn g3_the_spec_changes_at_any_step() {
    let server = json!({"replicas": 2, "restartPolicy": "ExitCode",
        "template": {"spec": {"containers": [{"name": "mxnet", "image": "i"}]}}});
    let image = json!({"template": {"spec": {"containers": [{"name": "mxnet", "image": "other"}]}}});
    let edits = [
        worker(json!({"replicas": 4})),
        worker(json!({"replicas": 1})),
        worker(json!({"replicas": 0})),
        worker(image),
        json!({"spec": {"mxReplicaSpecs": {"Server": server}}}),
        json!({"spec": {"mxReplicaSpecs": {"Server": null}}}),
        policy(json!({"cleanPodPolicy": "All"})),
        policy(json!({"activeDeadlineSeconds": 50})),
        policy(json!({"backoffLimit": 0})),
        policy(json!({"suspend": true})),
    ];
    for change in edits {
        // So many changes after the job was made: 4 services, 4 pods, what the nodes say, the status.
        for step in [0, 5, 10, 16] {
            let mut world = World::new(|_, _| Runs);
            let before = world.cluster.resource_version();
            world.create(train("job", &SMALL)).await;
            while world.cluster.resource_version() <= before + step {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            edit(&world, "mxjobs", "job", change.clone()).await;
            rest(&mut world).await;
            let case = format!("{change} at change {step}");
            let runs = made(&world, "pods job-scheduler-0");
            assert_eq!(runs.0, 1, "{case}: nothing that stays is made anew");
            assert_eq!(world.status("job")["restartCount"], Value::Null, "{case}");
        }
    }
}

/// The highest numbers go, and a template is for pods that are still to come.
#[tokio::test(start_paused = true)]
async fn g3_fewer_workers_are_the_first_ones() {
    let mut world = World::new(|_, _| Runs);
    let one = json!({"runPolicy": {"restartScope": "Replica"}});
    world
        .create(with(train("job", &[("Scheduler", 1), ("Worker", 5)]), one))
        .await;
    world.pass(10).await;
    let before: Vec<Value> = (0..2)
        .map(|n| world.stored("pods", &format!("job-worker-{n}")))
        .collect();
    let image = json!({"template": {"spec": {"containers": [{"name": "mxnet", "image": "other"}]}}});
    edit(&world, "mxjobs", "job", worker(image)).await;
    edit(&world, "mxjobs", "job", worker(json!({"replicas": 2}))).await;
    rest(&mut world).await;
    for (n, pod) in before.iter().enumerate() {
        assert_eq!(
            &world.stored("pods", &format!("job-worker-{n}")),
            pod,
            "it runs on as it is"
        );
    }
    assert_eq!(world.pods_now().len(), 3);
    world.delete_pod("job-worker-1").await;
    rest(&mut world).await;
    let image =
        |n: u32| world.stored("pods", &format!("job-worker-{n}"))["spec"]["containers"][0]["image"].clone();
    assert_eq!((image(0), image(1)), (json!("i"), json!("other")));
}

/// Anybody with the right may write a status. What the spec and the pods tell is put right again; what only the
/// status remembers is believed: an end that somebody writes is one, and restarts that were forgotten are.
#[tokio::test(start_paused = true)]
async fn g5_somebody_edits_the_status() {
    let time = "2030-01-01T00:00:10Z";
    let end = json!({"type": "Succeeded", "status": "True", "reason": "r", "message": "m",
        "lastTransitionTime": time, "lastUpdateTime": time});
    let edits = [
        (Value::Null, false),
        (json!({"conditions": null}), false),
        (json!({"conditions": []}), false),
        (
            json!({"replicaStatuses": {"Worker": {"active": 99, "failed": -7}, "Sleeper": {"active": 1}}}),
            false,
        ),
        (json!({"replicaStatuses": null}), false),
        (json!({"recovery": null}), false),
        (json!({"startTime": null}), false),
        (json!({"conditions": [end]}), true),
    ];
    for (change, ends) in edits {
        let mut world = World::new(|_, _| Runs);
        world.create(train("job", &SMALL)).await;
        world.pass(30).await;
        let right = world.status("job");
        edit_status(&world, "mxjobs", "job", change.clone()).await;
        rest(&mut world).await;
        let now = world.status("job");
        if ends {
            assert_eq!(world.conditions("job"), "Succeeded", "{change}");
            assert!(
                world.pods_now().is_empty(),
                "{change}: what still ran is cleaned up"
            );
        } else {
            for field in ["replicaStatuses", "recovery"] {
                assert_eq!(now[field], right[field], "{change}");
            }
            assert_eq!(world.conditions("job"), "Created Running", "{change}");
            assert!(!now["startTime"].is_null(), "{change}");
            assert_eq!(made(&world, "pods job-worker-0"), (1, 0), "{change}");
        }
    }
}

/// An end that somebody takes back was one all the same: with the condition gone, the job goes on where its pods are.
#[tokio::test(start_paused = true)]
async fn g5_an_end_is_taken_back() {
    let world = World::new(ends_well);
    world.create(train("job", &SMALL)).await;
    world.pass(230).await;
    assert!(world.conditions("job").ends_with("Succeeded"));
    edit_status(&world, "mxjobs", "job", json!({"conditions": null})).await;
    world.pass(200).await;
    assert!(
        world.conditions("job").ends_with("Succeeded"),
        "{}",
        world.conditions("job")
    );
    assert_eq!(
        made(&world, "pods job-scheduler-0"),
        (1, 0),
        "nothing is run again"
    );
    // What the user did is told as a violation: that is all there is.
    let found = world.monitor.found();
    assert!(found.iter().all(|v| v.id == "I3"), "{found:#?}");
}

/// The time to live of a job that is deleted, and made again, in the moment in which it is over.
#[tokio::test(start_paused = true)]
async fn g9_its_time_is_over_as_somebody_makes_it_anew() {
    for slow in [false, true] {
        let mut world = World::new(|_, _| Succeeds(10));
        let short = json!({"runPolicy": {"ttlSecondsAfterFinished": 30}});
        world.create(with(train("job", &SMALL), short.clone())).await;
        world.pass(20).await;
        assert!(world.conditions("job").ends_with("Succeeded"));
        // The operator's own call comes late, or it has not heard of the new job.
        if slow {
            let slow = training_job_simulation::fault::Fault::Slow(20_000, 0);
            world.network.fault("delete", "mxjobs", 1, slow);
            world.pass(25).await;
        } else {
            world.cluster.freeze_watches(Some("mxjobs"));
        }
        world.delete("job").await;
        world.create(with(train("job", &SMALL), short)).await;
        let uid = world.stored("mxjobs", "job")["metadata"]["uid"].clone();
        world.pass(30).await;
        assert!(world.network.count("delete", "mxjobs") >= 1, "slow: {slow}");
        assert_eq!(
            world.stored("mxjobs", "job")["metadata"]["uid"],
            uid,
            "slow: {slow}"
        );
        world.cluster.thaw_watches(None);
        rest(&mut world).await;
        assert!(world.stored("mxjobs", "job").is_null(), "slow: {slow}");
    }
}
