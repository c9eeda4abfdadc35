//! The control plane.

use training_job_simulation::faults::CallFault::{self, Refused, Reset, Throttled};
use training_job_simulation::faults::PodFate::{Runs, Succeeds};
use training_job_simulation::simulation::{SMALL, Setup, Simulation, train, with_spec};

use crate::harness::{created_and_deleted, edit, event_count, settle_and_check, succeeds, worker};
use kube_memory::Versions;
use training_job_simulation::invariants::AllowedStaleness;

/// All connections break, and new ones are refused for seconds. The server has lost its history, so watches cannot
/// resume.
#[tokio::test(start_paused = true)]
async fn the_server_is_started_anew() {
    for at in [0, 1, 2, 50, 101, 201] {
        let mut sim = Simulation::new(succeeds);
        sim.create(train("job", &SMALL)).await;
        sim.advance(at).await;
        sim.network.add_rule(|_| Some(Reset));
        sim.cluster.cut_watches(None);
        sim.cluster.compact();
        sim.advance(10).await;
        sim.network.heal();
        sim.network.take_calls();
        sim.advance(60).await;
        let lists = sim.network.count("list", "");
        assert!(lists <= 6, "{at}: {lists} lists");
        settle_and_check(&mut sim).await;
        assert!(sim.conditions("job").ends_with("Succeeded"), "{at}");
        assert_eq!(created_and_deleted(&sim, "pods job-worker-0").0, 1, "{at}");
    }
}

/// No call gets a response for an hour. Meanwhile pods fail and succeed, and jobs are created.
#[tokio::test(start_paused = true)]
async fn the_server_is_away_for_an_hour() {
    let mut sim = Simulation::new(|name, attempt| match attempt {
        0 if name.ends_with("worker-1") => training_job_simulation::faults::PodFate::Fails(137, 60),
        _ if name.starts_with("ends") => Succeeds(120),
        _ => Runs,
    });
    for number in 0..20 {
        sim.create(train(&format!("job-{number}"), &SMALL)).await;
    }
    sim.advance(30).await;
    sim.network.add_rule(|_| Some(Reset));
    sim.cluster.cut_watches(None);
    for number in 0..15 {
        sim.create(train(&format!("ends-{number}"), &[("Worker", 1)]))
            .await;
    }
    sim.network.take_calls();
    sim.advance(3_600).await;
    let calls = sim.network.take_calls();
    let probes = calls.iter().filter(|call| call.is("probe", "")).count();
    assert!(probes < 3 * 3_600, "{probes} attempts in an hour");
    // Calls that were under way. All others wait.
    let calls = calls.len() - probes;
    assert!(calls < 100, "{calls} calls in an hour");
    sim.network.heal();
    sim.advance(60).await;
    assert!(
        sim.network.most_in_ten_seconds() <= 400,
        "{} calls in ten seconds",
        sim.network.most_in_ten_seconds()
    );
    sim.advance(400).await;
    settle_and_check(&mut sim).await;
    for number in 0..15 {
        assert!(sim.conditions(&format!("ends-{number}")).ends_with("Succeeded"));
    }
    for number in 0..20 {
        assert_eq!(
            sim.status(&format!("job-{number}"))["restartCount"],
            1,
            "{number}"
        );
    }
}

/// The API server drops its history while the operator is disconnected. The operator lists once, and continues.
#[tokio::test(start_paused = true)]
async fn the_history_is_forgotten_while_it_is_cut_off() {
    let mut sim = Simulation::new(succeeds);
    sim.create(train("job", &SMALL)).await;
    sim.advance(10).await;
    let before = sim.network.count("list", "");
    sim.network
        .fail_next("watch", "", 8, Refused(503, "ServiceUnavailable"));
    sim.cluster.cut_watches(None);
    edit(&sim, "mxjobs", "job", worker(serde_json::json!({"replicas": 3}))).await;
    sim.cluster.compact();
    sim.advance(60).await;
    assert_eq!(sim.network.count("list", "") - before, 4, "one list of each kind");
    assert_eq!(sim.pods_now().len(), 5);
    settle_and_check(&mut sim).await;
    assert!(sim.conditions("job").ends_with("Succeeded"));
}

/// For ten minutes all writes fail, and all reads succeed.
#[tokio::test(start_paused = true)]
async fn etcd_has_no_space_left() {
    let mut sim = Simulation::new(succeeds);
    sim.create(train("early", &SMALL)).await;
    sim.advance(50).await;
    sim.network.add_rule(|call| {
        let full = Refused(500, "etcdserver: mvcc: database space exceeded");
        call.writes().then_some(full)
    });
    sim.create(train("job", &SMALL)).await;
    sim.network.take_calls();
    sim.advance(600).await;
    let writes = sim.network.take_calls().iter().filter(|c| c.writes()).count();
    assert!((10..150).contains(&writes), "{writes} tries in ten minutes");
    assert_eq!(sim.pods_now().len(), 4);
    settle_and_check(&mut sim).await;
    for job in ["early", "job"] {
        assert!(sim.conditions(job).ends_with("Succeeded"), "{job}");
    }
    assert_eq!(created_and_deleted(&sim, "pods job-worker-0").0, 1);
    assert_eq!(event_count(&sim, "MXJobSucceeded"), 2);
}

/// A webhook for pods gives no response, and later the one for jobs' statuses too. The job has an event for its pods.
#[tokio::test(start_paused = true)]
async fn a_webhook_is_down() {
    let down = Refused(500, "failed calling webhook: context deadline exceeded");
    for statuses in [false, true] {
        let mut sim = Simulation::new(succeeds);
        let fault = down.clone();
        sim.network.add_rule(move |call| {
            let hit = call.is("create", "pods") || (statuses && call.is("patch", "mxjobs/status"));
            hit.then(|| fault.clone())
        });
        sim.create(train("job", &SMALL)).await;
        sim.advance(900).await;
        assert_eq!(event_count(&sim, "FailedCreatePod"), 1);
        let tries = sim.network.count("create", "pods");
        assert!((4..80).contains(&tries), "{tries} tries");
        assert_eq!(sim.services_now().len(), 4);
        settle_and_check(&mut sim).await;
        assert!(sim.conditions("job").ends_with("Succeeded"));
    }
}

/// Every second call is denied.
#[tokio::test(start_paused = true)]
async fn most_calls_are_turned_away() {
    let mut sim = Simulation::without_operator(succeeds);
    let mut number = 0_u64;
    sim.network.add_rule(move |_| {
        number += 1;
        number.is_multiple_of(2).then_some(Throttled("1"))
    });
    sim.start();
    for job in 0..5 {
        sim.create(train(&format!("job-{job}"), &SMALL)).await;
    }
    sim.advance(900).await;
    let calls = sim.network.take_calls().len();
    assert!(calls < 1_000, "{calls} calls in a quarter of an hour");
    for job in 0..5 {
        let conditions = sim.conditions(&format!("job-{job}"));
        assert!(conditions.ends_with("Succeeded"), "{job}: {conditions}");
    }
    settle_and_check(&mut sim).await;
}

/// The schema of the kind was tightened. Stored objects are no longer valid, and status writes are refused, for one job
/// or for all. The job has no condition, because it cannot be stored.
#[tokio::test(start_paused = true)]
async fn statuses_are_not_valid_any_more() {
    let invalid: CallFault = Refused(422, "Invalid");
    let mut sim = Simulation::new(succeeds);
    sim.create(train("early", &SMALL)).await;
    sim.advance(50).await;
    sim.network
        .fail_next("patch", "mxjobs/status", usize::MAX, invalid);
    sim.create(train("job", &SMALL)).await;
    sim.advance(3_600).await;
    let tries = sim.network.count("patch", "mxjobs/status");
    assert!((10..80).contains(&tries), "{tries} tries in an hour");
    assert_eq!(sim.pods_now().len(), 8, "its pods run all the same");
    settle_and_check(&mut sim).await;
    for job in ["early", "job"] {
        assert!(sim.conditions(job).ends_with("Succeeded"), "{job}");
        assert_eq!(
            created_and_deleted(&sim, &format!("pods {job}-worker-0")).0,
            1,
            "{job}"
        );
    }
}

/// The cluster is restored to an earlier moment. Deleted objects are back with their old UIDs, newer objects are
/// gone, and a recorded end is undone. Resource versions continue, as they should, or fall back.
#[tokio::test(start_paused = true)]
async fn etcd_is_restored_from_a_backup() {
    for versions in [Versions::GoOn, Versions::GoBack] {
        for (saved, at) in [(0, 20), (10, 20), (10, 110), (50, 230), (10, 600)] {
            let mut sim = Simulation::with_setup(Setup {
                staleness: AllowedStaleness {
                    of_others: 600_000,
                    of_own: 600_000,
                },
                ..Setup::mxjobs(succeeds)
            });
            sim.start();
            let clean = serde_json::json!({"runPolicy": {"cleanPodPolicy": "All"}});
            sim.create(with_spec(train("job", &SMALL), clean.clone())).await;
            sim.create(with_spec(train("gone", &SMALL), clean)).await;
            sim.advance(saved).await;
            sim.back_up();
            sim.delete("gone").await;
            sim.create(train("new", &SMALL)).await;
            sim.advance(at - saved).await;
            sim.restore(versions);
            sim.advance(1_200).await;
            let case = format!("{versions:?}, of second {saved} at second {at}");
            for job in ["job", "gone"] {
                assert!(
                    sim.conditions(job).ends_with("Succeeded"),
                    "{case}: {job}: {}",
                    sim.conditions(job)
                );
            }
            assert!(sim.stored("mxjobs", "new").is_null(), "{case}");
            assert!(sim.pods_now().is_empty(), "{case}: {:?}", sim.pods_now());
            settle_and_check(&mut sim).await;
        }
    }
}
