//! Watches that end, lag, fall silent or never start.

use serde_json::json;

use kube_memory::Versions;
use training_job_simulation::faults::CallFault::{Lost, Refused, Slow};
use training_job_simulation::faults::PodFate::{self, Runs, Succeeds};
use training_job_simulation::simulation::{SMALL, Simulation, with_spec};

use crate::toys::{simulate, toy_job, without_operator};

/// The pod succeeds. The scheduler ends last.
fn ends_well(name: &str, _: u32) -> PodFate {
    Succeeds(if name.contains("scheduler") { 15 } else { 10 })
}

/// Runs a job while `what` is done to the cluster each second.
async fn lives_through(what: impl Fn(&Simulation)) -> Simulation {
    let sim = simulate(ends_well);
    sim.create(toy_job("job", &SMALL)).await;
    for _ in 0..20 {
        sim.advance(1).await;
        what(&sim);
    }
    sim.advance(60).await;
    assert_eq!(sim.conditions("job"), "Created Running=False Succeeded");
    assert_eq!(sim.status("job")["restartCount"], json!(null));
    assert_eq!(sim.network.count("create", "pods"), 4);
    sim.assert_no_violations();
    sim
}

#[tokio::test(start_paused = true)]
async fn watches_are_cut_every_second() {
    let sim = lives_through(|sim| {
        sim.cluster.cut_watches(None);
    })
    .await;
    assert_eq!(
        sim.network.count("list", ""),
        4,
        "they are taken up where they were"
    );
}

#[tokio::test(start_paused = true)]
async fn watches_are_cut_and_the_history_is_lost() {
    lives_through(|sim| {
        sim.cluster.compact();
        sim.cluster.cut_watches(None);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn every_watch_gets_410_for_an_hour() {
    for code in [410, 404] {
        let sim = simulate(ends_well);
        sim.network
            .fail_next("watch", "pods", usize::MAX, Refused(code, "Expired"));
        sim.create(toy_job("job", &SMALL)).await;
        sim.advance(3_600).await;
        let lists = sim.network.count("list", "pods");
        let watches = sim.network.count("watch", "pods");
        assert!(
            lists <= 130 && watches <= 130,
            "{code}: {lists} lists, {watches} watches in an hour"
        );
        if code == 410 {
            assert!(sim.conditions("job").ends_with("Succeeded"), "lists are enough");
        }
        sim.network.heal();
        sim.advance(120).await;
        assert!(sim.conditions("job").ends_with("Succeeded"), "{code}");
        sim.assert_no_violations();
    }
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_make_no_storm() {
    let sim = simulate(|_, _| Runs);
    sim.create(toy_job("job", &SMALL)).await;
    sim.advance(10).await;
    sim.network.take_calls();
    for _ in 0..20_000 {
        sim.cluster.cut_watches(None);
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let calls = sim.network.take_calls().len();
    assert!(calls < 150, "{calls} calls in 200 seconds");
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn a_dead_watch_is_noticed() {
    for resource in ["pods", "toyjobs", "services"] {
        let sim = simulate(ends_well);
        sim.create(toy_job("job", &SMALL)).await;
        sim.advance(5).await;
        assert!(sim.cluster.freeze_watches(Some(resource)) > 0);
        sim.advance(200).await;
        assert!(sim.conditions("job").ends_with("Succeeded"), "{resource}");
        assert_eq!(sim.network.count("create", "pods"), 4, "{resource}");
        sim.assert_no_violations();
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_never_begins_is_noticed() {
    for verb in ["watch", "list"] {
        let mut sim = without_operator(ends_well);
        sim.network.fail_next(verb, "pods", 1, Lost);
        sim.create(toy_job("job", &SMALL)).await;
        sim.start();
        sim.advance(120).await;
        assert!(sim.conditions("job").ends_with("Succeeded"), "{verb}");
        sim.assert_no_violations();
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_before_all_lists_are_complete() {
    for resource in ["pods", "services", "toyjobs"] {
        let mut sim = simulate(|_, _| Runs);
        sim.create(toy_job("job", &SMALL)).await;
        sim.advance(10).await;
        sim.kill().await;
        sim.network.take_calls();
        sim.network
            .fail_next("list", resource, 20, Refused(500, "InternalError"));
        sim.start();
        sim.advance(60).await;
        assert!(
            sim.network.take_calls().iter().all(|call| !call.writes()),
            "{resource}"
        );
        sim.assert_no_violations();
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_while_things_change_loses_nothing() {
    let sim = simulate(ends_well);
    for number in 0..20 {
        let job = with_spec(
            toy_job(&format!("job-{number}"), &SMALL),
            json!({"runPolicy": {"cleanPodPolicy": "All"}}),
        );
        sim.create(job).await;
        tokio::time::sleep(std::time::Duration::from_millis(900)).await;
        sim.cluster.compact();
        sim.cluster.cut_watches(None);
    }
    sim.advance(60).await;
    for number in 0..20 {
        let name = format!("job-{number}");
        assert!(sim.conditions(&name).ends_with("Succeeded"), "{name}");
    }
    assert!(sim.pods_now().is_empty());
    assert_eq!(sim.network.count("create", "pods"), 80);
    sim.assert_no_violations();
}

/// The versions of a restored server restart at the backup's version. A watch from an earlier, higher version gets no
/// event until the server has reached that version.
#[tokio::test(start_paused = true)]
async fn a_server_that_was_set_back_is_listed_anew() {
    for versions in [Versions::GoBack, Versions::GoOn] {
        let mut sim = simulate(|_, _| Runs);
        sim.create(toy_job("kept", &SMALL)).await;
        sim.advance(10).await;
        sim.back_up();
        sim.create(toy_job("lost", &SMALL)).await;
        sim.delete_pod("kept-worker-1").await;
        sim.advance(60).await;
        sim.restore(versions);
        sim.advance(300).await;
        let pods = sim.pods_now();
        assert_eq!(pods.len(), 4, "{versions:?}: {pods:?}");
        assert!(
            pods.iter()
                .all(|p| p.starts_with("kept-") && p.ends_with(":Running")),
            "{versions:?}: {pods:?}"
        );
        // The operator has the contents in its caches again: it replaces pods when they go.
        sim.delete_pod("kept-server-0").await;
        sim.advance(10).await;
        assert_eq!(sim.pods_now().len(), 4, "{versions:?}");
        sim.assert_no_violations();
    }
}

/// A restored server contains a deleted job and its pods again. The job may be listed long before the pods. A
/// response that names a pod does not help a watch that has passed the pod's version.
#[tokio::test(start_paused = true)]
async fn pods_that_are_back_before_their_watch_is_are_not_tried_without_a_pause() {
    let mut sim = simulate(|_, _| Runs);
    sim.create(toy_job("job", &SMALL)).await;
    sim.advance(10).await;
    sim.back_up();
    sim.delete("job").await;
    sim.advance(10).await;
    for verb in ["list", "watch"] {
        sim.network
            .fail_next(verb, "pods", usize::MAX, Refused(503, "ServiceUnavailable"));
    }
    sim.restore(Versions::GoOn);
    sim.network.take_calls();
    let events = sim.events().len();
    sim.advance(10).await;
    let calls = ["get", "create"].map(|verb| sim.network.count(verb, "pods"));
    assert!((4..=20).contains(&calls[0]), "{calls:?} calls in ten seconds");
    assert_eq!(calls[1], 0, "the pods are there");
    assert_eq!(sim.events()[events..], [""; 0], "nothing restarts");
    sim.network.heal();
    sim.advance(60).await;
    assert_eq!(sim.pods_now().len(), 4);
    assert_eq!(sim.status("job")["restartCount"], json!(null));
    sim.assert_no_violations();
}

/// The operator learns of its own write from the response, because the watch breaks while the write is in flight.
#[tokio::test(start_paused = true)]
async fn a_new_operator_continues_from_the_stored_status() {
    let sim = simulate(|_, _| Runs);
    sim.create(toy_job("job", &SMALL)).await;
    sim.advance(10).await;
    sim.network
        .fail_next("patch", "toyjobs/status", 1, Slow(2_000, 0));
    sim.edit("job", json!({"spec": {"runPolicy": {"suspend": true}}}))
        .await;
    sim.advance(1).await;
    sim.cluster.freeze_watches(Some("toyjobs"));
    sim.advance(10).await;
    assert!(sim.conditions("job").ends_with("Suspended"));
    assert_eq!(sim.pods_now(), [""; 0]);
    sim.assert_no_violations();
}
