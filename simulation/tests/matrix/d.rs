//! The control plane.

use training_job_simulation::fault::Fault::{self, Garbled, Refused, Reset, Throttled};
use training_job_simulation::kubelet::Fate::{Runs, Succeeds};
use training_job_simulation::world::{SMALL, Setup, World, train, with};

use crate::stage::{edit, ends_well, everywhere, made, rest, restart, success, told, worker, writes};
use kube_memory::Versions;
use training_job_simulation::invariants::Patience;

/// All connections break, and for seconds there is nobody to connect to; with its history the server has lost what
/// watches could go on from.
#[tokio::test(start_paused = true)]
async fn d1_the_server_is_started_anew() {
    for at in [0, 1, 2, 50, 101, 201] {
        let mut world = World::new(ends_well);
        world.create(train("job", &SMALL)).await;
        world.pass(at).await;
        world.network.rule(|_| Some(Reset));
        world.cluster.cut_watches(None);
        world.cluster.compact();
        world.pass(10).await;
        world.network.heal();
        world.network.take();
        world.pass(60).await;
        let lists = world.network.count("list", "");
        assert!(lists <= 6, "{at}: {lists} lists");
        rest(&mut world).await;
        assert!(world.conditions("job").ends_with("Succeeded"), "{at}");
        assert_eq!(made(&world, "pods job-worker-0").0, 1, "{at}");
    }
}

/// For an hour nobody answers. Jobs are there whose pods fail and end meanwhile, and new ones come.
#[tokio::test(start_paused = true)]
async fn d2_the_server_is_away_for_an_hour() {
    let mut world = World::new(|name, attempt| match attempt {
        0 if name.ends_with("worker-1") => training_job_simulation::kubelet::Fate::Fails(137, 60),
        _ if name.starts_with("ends") => Succeeds(120),
        _ => Runs,
    });
    for number in 0..20 {
        world.create(train(&format!("job-{number}"), &SMALL)).await;
    }
    world.pass(30).await;
    world.network.rule(|_| Some(Reset));
    world.cluster.cut_watches(None);
    for number in 0..15 {
        world
            .create(train(&format!("ends-{number}"), &[("Worker", 1)]))
            .await;
    }
    world.network.take();
    world.pass(3_600).await;
    let calls = world.network.take().len();
    // Of each of three watches one a minute or so, and some for jobs that were in work.
    assert!(calls < 3 * 130 + 20 * 20, "{calls} calls in an hour");
    world.network.heal();
    world.pass(60).await;
    assert!(
        world.network.busiest() <= 400,
        "{} calls in ten seconds",
        world.network.busiest()
    );
    world.pass(400).await;
    rest(&mut world).await;
    for number in 0..15 {
        assert!(world.conditions(&format!("ends-{number}")).ends_with("Succeeded"));
    }
    for number in 0..20 {
        assert_eq!(
            world.status(&format!("job-{number}"))["restartCount"],
            1,
            "{number}"
        );
    }
}

#[test]
fn d3_etcd_has_no_leader() {
    let refused = Refused(500, "etcdserver: request timed out");
    everywhere(&success(), |_| true, &[refused]);
    let done = Garbled(
        500,
        "etcdserver: request timed out, possibly due to connection lost",
    );
    everywhere(&restart(), writes, &[done]);
}

/// While the operator is cut off its history is forgotten; it lists once, and goes on.
#[tokio::test(start_paused = true)]
async fn d4_the_history_is_forgotten_while_it_is_cut_off() {
    let mut world = World::new(ends_well);
    world.create(train("job", &SMALL)).await;
    world.pass(10).await;
    let before = world.network.count("list", "");
    world
        .network
        .fault("watch", "", 6, Refused(503, "ServiceUnavailable"));
    world.cluster.cut_watches(None);
    edit(
        &world,
        "mxjobs",
        "job",
        worker(serde_json::json!({"replicas": 3})),
    )
    .await;
    world.cluster.compact();
    world.pass(60).await;
    assert_eq!(
        world.network.count("list", "") - before,
        3,
        "one list of each kind"
    );
    assert_eq!(world.pods_now().len(), 5);
    rest(&mut world).await;
    assert!(world.conditions("job").ends_with("Succeeded"));
}

/// Nothing can be written for ten minutes, and everything read.
#[tokio::test(start_paused = true)]
async fn d6_there_is_no_space_left() {
    let mut world = World::new(ends_well);
    world.create(train("early", &SMALL)).await;
    world.pass(50).await;
    world.network.rule(|call| {
        let full = Refused(500, "etcdserver: mvcc: database space exceeded");
        call.writes().then_some(full)
    });
    world.create(train("job", &SMALL)).await;
    world.network.take();
    world.pass(600).await;
    let writes = world.network.take().iter().filter(|c| c.writes()).count();
    assert!((10..150).contains(&writes), "{writes} tries in ten minutes");
    assert_eq!(world.pods_now().len(), 4);
    rest(&mut world).await;
    for job in ["early", "job"] {
        assert!(world.conditions(job).ends_with("Succeeded"), "{job}");
    }
    assert_eq!(made(&world, "pods job-worker-0").0, 1);
    assert_eq!(told(&world, "MXJobSucceeded"), 2);
}

/// Pods, and then jobs' statuses too, pass by a webhook that does not answer. The job has an event for its pods.
#[tokio::test(start_paused = true)]
async fn d7_a_webhook_is_down() {
    let down = Refused(500, "failed calling webhook: context deadline exceeded");
    for statuses in [false, true] {
        let mut world = World::new(ends_well);
        let fault = down.clone();
        world.network.rule(move |call| {
            let hit = call.is("create", "pods") || (statuses && call.is("patch", "mxjobs/status"));
            hit.then(|| fault.clone())
        });
        world.create(train("job", &SMALL)).await;
        world.pass(900).await;
        assert_eq!(told(&world, "FailedCreatePod"), 1);
        let tries = world.network.count("create", "pods");
        assert!((4..80).contains(&tries), "{tries} tries");
        assert_eq!(world.services_now().len(), 4);
        rest(&mut world).await;
        assert!(world.conditions("job").ends_with("Succeeded"));
    }
}

/// Every second call is turned away, whatever it is.
#[tokio::test(start_paused = true)]
async fn d8_most_calls_are_turned_away() {
    let mut world = World::without_operator(ends_well);
    let mut number = 0_u64;
    world.network.rule(move |_| {
        number += 1;
        number.is_multiple_of(2).then_some(Throttled("1"))
    });
    world.start();
    for job in 0..5 {
        world.create(train(&format!("job-{job}"), &SMALL)).await;
    }
    world.pass(900).await;
    let calls = world.network.take().len();
    assert!(calls < 1_000, "{calls} calls in a quarter of an hour");
    for job in 0..5 {
        let conditions = world.conditions(&format!("job-{job}"));
        assert!(conditions.ends_with("Succeeded"), "{job}: {conditions}");
    }
    rest(&mut world).await;
}

/// A definition was tightened: what is stored is not valid any more, and no status is taken, for one job or for all.
/// There is no condition, since there is nowhere to put it.
#[tokio::test(start_paused = true)]
async fn d9_statuses_are_not_valid_any_more() {
    let invalid: Fault = Refused(422, "Invalid");
    let mut world = World::new(ends_well);
    world.create(train("early", &SMALL)).await;
    world.pass(50).await;
    world.network.fault("patch", "mxjobs/status", usize::MAX, invalid);
    world.create(train("job", &SMALL)).await;
    world.pass(3_600).await;
    let tries = world.network.count("patch", "mxjobs/status");
    assert!((10..80).contains(&tries), "{tries} tries in an hour");
    assert_eq!(world.pods_now().len(), 8, "its pods run all the same");
    rest(&mut world).await;
    for job in ["early", "job"] {
        assert!(world.conditions(job).ends_with("Succeeded"), "{job}");
        assert_eq!(made(&world, &format!("pods {job}-worker-0")).0, 1, "{job}");
    }
}

/// Back to a moment before: what was deleted is there again with its old identity, what came since is gone, and an
/// end that was written is not. Versions go on, as they should, or back.
#[tokio::test(start_paused = true)]
async fn d5_etcd_is_restored_from_a_backup() {
    for versions in [Versions::GoOn, Versions::GoBack] {
        for (saved, at) in [(0, 20), (10, 20), (10, 110), (50, 230), (10, 600)] {
            let mut world = World::with(Setup {
                patience: Patience {
                    others: 600_000,
                    own: 600_000,
                },
                ..Setup::of(ends_well)
            });
            world.start();
            let clean = serde_json::json!({"runPolicy": {"cleanPodPolicy": "All"}});
            world.create(with(train("job", &SMALL), clean.clone())).await;
            world.create(with(train("gone", &SMALL), clean)).await;
            world.pass(saved).await;
            world.back_up();
            world.delete("gone").await;
            world.create(train("new", &SMALL)).await;
            world.pass(at - saved).await;
            world.restore(versions);
            world.pass(1_200).await;
            let case = format!("{versions:?}, of second {saved} at second {at}");
            for job in ["job", "gone"] {
                assert!(
                    world.conditions(job).ends_with("Succeeded"),
                    "{case}: {job}: {}",
                    world.conditions(job)
                );
            }
            assert!(world.stored("mxjobs", "new").is_null(), "{case}");
            assert!(world.pods_now().is_empty(), "{case}: {:?}", world.pods_now());
            rest(&mut world).await;
        }
    }
}
