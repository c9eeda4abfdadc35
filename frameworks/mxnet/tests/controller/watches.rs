//! Watches that end, lie behind, die or were never there.

use serde_json::json;

use kube_memory::Versions;
use training_job_simulation::faults::CallFault::{Lost, Refused, Slow};
use training_job_simulation::faults::PodFate::{self, Runs, Succeeds};
use training_job_simulation::simulation::{SMALL, Simulation, train, with_spec};

/// Ends well, the scheduler last.
fn ends_well(name: &str, _: u32) -> PodFate {
    Succeeds(if name.contains("scheduler") { 15 } else { 10 })
}

/// A job lives while this is done to the cluster each second.
async fn lives_through(what: impl Fn(&Simulation)) -> Simulation {
    let world = Simulation::new(ends_well);
    world.create(train("job", &SMALL)).await;
    for _ in 0..20 {
        world.advance(1).await;
        what(&world);
    }
    world.advance(60).await;
    assert_eq!(world.conditions("job"), "Created Running=False Succeeded");
    assert_eq!(world.status("job")["restartCount"], json!(null));
    assert_eq!(world.network.count("create", "pods"), 4);
    world.assert_no_violations();
    world
}

#[tokio::test(start_paused = true)]
async fn watches_are_cut_every_second() {
    let world = lives_through(|world| {
        world.cluster.cut_watches(None);
    })
    .await;
    assert_eq!(
        world.network.count("list", ""),
        3,
        "they are taken up where they were"
    );
}

#[tokio::test(start_paused = true)]
async fn watches_are_cut_and_the_history_is_lost() {
    lives_through(|world| {
        world.cluster.compact();
        world.cluster.cut_watches(None);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn every_watch_is_told_410_for_an_hour() {
    for code in [410, 404] {
        let world = Simulation::new(ends_well);
        world
            .network
            .fail_next("watch", "pods", usize::MAX, Refused(code, "Expired"));
        world.create(train("job", &SMALL)).await;
        world.advance(3_600).await;
        let lists = world.network.count("list", "pods");
        let watches = world.network.count("watch", "pods");
        assert!(
            lists <= 130 && watches <= 130,
            "{code}: {lists} lists, {watches} watches in an hour"
        );
        if code == 410 {
            assert!(world.conditions("job").ends_with("Succeeded"), "lists are enough");
        }
        world.network.heal();
        world.advance(120).await;
        assert!(world.conditions("job").ends_with("Succeeded"), "{code}");
        world.assert_no_violations();
    }
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_make_no_storm() {
    let world = Simulation::new(|_, _| Runs);
    world.create(train("job", &SMALL)).await;
    world.advance(10).await;
    world.network.take_calls();
    for _ in 0..20_000 {
        world.cluster.cut_watches(None);
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let calls = world.network.take_calls().len();
    assert!(calls < 150, "{calls} calls in 200 seconds");
    world.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_dead_watch_is_noticed() {
    for resource in ["pods", "mxjobs", "services"] {
        let world = Simulation::new(ends_well);
        world.create(train("job", &SMALL)).await;
        world.advance(5).await;
        assert!(world.cluster.freeze_watches(Some(resource)) > 0);
        world.advance(200).await;
        assert!(world.conditions("job").ends_with("Succeeded"), "{resource}");
        assert_eq!(world.network.count("create", "pods"), 4, "{resource}");
        world.assert_no_violations();
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_never_begins_is_noticed() {
    for verb in ["watch", "list"] {
        let mut world = Simulation::without_operator(ends_well);
        world.network.fail_next(verb, "pods", 1, Lost);
        world.create(train("job", &SMALL)).await;
        world.start();
        world.advance(120).await;
        assert!(world.conditions("job").ends_with("Succeeded"), "{verb}");
        world.assert_no_violations();
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_before_all_lists_are_complete() {
    for resource in ["pods", "services", "mxjobs"] {
        let mut world = Simulation::new(|_, _| Runs);
        world.create(train("job", &SMALL)).await;
        world.advance(10).await;
        world.kill().await;
        world.network.take_calls();
        world
            .network
            .fail_next("list", resource, 20, Refused(500, "InternalError"));
        world.start();
        world.advance(60).await;
        assert!(
            world.network.take_calls().iter().all(|call| !call.writes()),
            "{resource}"
        );
        world.assert_no_violations();
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_while_things_change_loses_nothing() {
    let world = Simulation::new(ends_well);
    for number in 0..20 {
        let job = with_spec(
            train(&format!("job-{number}"), &SMALL),
            json!({"runPolicy": {"cleanPodPolicy": "All"}}),
        );
        world.create(job).await;
        tokio::time::sleep(std::time::Duration::from_millis(900)).await;
        world.cluster.compact();
        world.cluster.cut_watches(None);
    }
    world.advance(60).await;
    for number in 0..20 {
        let name = format!("job-{number}");
        assert!(world.conditions(&name).ends_with("Succeeded"), "{name}");
    }
    assert!(world.pods_now().is_empty());
    assert_eq!(world.network.count("create", "pods"), 80);
    world.assert_no_violations();
}

/// The versions of a server that was set back count up again from where they were then: a watch that is taken
/// up from a version of before is told nothing until they have come that far.
#[tokio::test(start_paused = true)]
async fn a_server_that_was_set_back_is_listed_anew() {
    for versions in [Versions::GoBack, Versions::GoOn] {
        let mut world = Simulation::new(|_, _| Runs);
        world.create(train("kept", &SMALL)).await;
        world.advance(10).await;
        world.back_up();
        world.create(train("lost", &SMALL)).await;
        world.delete_pod("kept-worker-1").await;
        world.advance(60).await;
        world.restore(versions);
        world.advance(300).await;
        let pods = world.pods_now();
        assert_eq!(pods.len(), 4, "{versions:?}: {pods:?}");
        assert!(
            pods.iter()
                .all(|p| p.starts_with("kept-") && p.ends_with(":Running")),
            "{versions:?}: {pods:?}"
        );
        // What it holds is known again: its pods are replaced when they go.
        world.delete_pod("kept-server-0").await;
        world.advance(10).await;
        assert_eq!(world.pods_now().len(), 4, "{versions:?}");
        world.assert_no_violations();
    }
}

/// Of its own write it knows by the answer: the watch dies while the write is under way.
#[tokio::test(start_paused = true)]
async fn what_it_has_written_it_goes_on_from() {
    let world = Simulation::new(|_, _| Runs);
    world.create(train("job", &SMALL)).await;
    world.advance(10).await;
    world
        .network
        .fail_next("patch", "mxjobs/status", 1, Slow(2_000, 0));
    world
        .edit("job", json!({"spec": {"runPolicy": {"suspend": true}}}))
        .await;
    world.advance(1).await;
    world.cluster.freeze_watches(Some("mxjobs"));
    world.advance(10).await;
    assert!(world.conditions("job").ends_with("Suspended"));
    assert_eq!(world.pods_now(), [""; 0]);
    world.assert_no_violations();
}
