//! The control plane.

use kube_memory::Versions;
use serde_json::json;
use training_job::TrainingJob;
use training_job_mxnet::MXJob;
use training_job_simulation::faults::CallFault::{self, Refused, Reset};
use training_job_simulation::faults::PodFate::{self, Runs, Succeeds};
use training_job_simulation::simulation::{SMALL, Simulation, train, with_spec};

use crate::harness::{
    assert_ends, assert_made, assert_within, call, edit, edit_job, event_count, settle_and_check, sim_of,
    stale, succeeds, worker,
};

/// All connections break, and new ones are refused for seconds. The server has lost its history, so watches cannot
/// resume.
#[tokio::test(start_paused = true)]
async fn the_server_is_started_anew() {
    for at in [0, 1, 2, 50, 101, 201] {
        let mut sim = sim_of(succeeds, json!({})).await;
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
        assert_ends(&sim, "job", "Succeeded", at);
        assert_made(&sim, "pods job-worker-0", 1, at);
    }
}

/// No call gets a response for an hour. Meanwhile pods fail and succeed, and jobs are created.
#[tokio::test(start_paused = true)]
async fn the_server_is_away_for_an_hour() {
    let mut sim = Simulation::new(|name, attempt| match attempt {
        0 if name.ends_with("worker-1") => PodFate::Fails(137, 60),
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
    let mut sim = sim_of(succeeds, json!({})).await;
    sim.advance(10).await;
    let before = sim.network.count("list", "");
    sim.network
        .fail_next("watch", "", 8, Refused(503, "ServiceUnavailable"));
    sim.cluster.cut_watches(None);
    edit_job(&sim, worker(serde_json::json!({"replicas": 3}))).await;
    sim.cluster.compact();
    sim.advance(60).await;
    assert_eq!(sim.network.count("list", "") - before, 4, "one list of each kind");
    assert_eq!(sim.pods_now().len(), 5);
    settle_and_check(&mut sim).await;
    assert_ends(&sim, "job", "Succeeded", "");
}

/// For ten minutes writes fail with 500: all of them, because etcd is full, or those that a webhook without a response
/// sees. The job has an event for its pods if it can be stored.
#[tokio::test(start_paused = true)]
async fn writes_fail_for_ten_minutes() {
    let full = Refused(500, "etcdserver: mvcc: database space exceeded");
    let down = Refused(500, "failed calling webhook: context deadline exceeded");
    let rows = [
        ("all", &full, &[("", "")][..]),
        ("pods", &down, &[("create", "pods")]),
        (
            "pods and statuses",
            &down,
            &[("create", "pods"), ("patch", "mxjobs/status")],
        ),
    ];
    for (case, fault, calls) in rows {
        let mut sim = Simulation::new(succeeds);
        sim.create(train("early", &SMALL)).await;
        sim.advance(50).await;
        let fault = fault.clone();
        sim.network.add_rule(move |call| {
            let is_meant = |(verb, resource): &(&str, &str)| verb.is_empty() || call.is(verb, resource);
            (call.writes() && calls.iter().any(is_meant)).then(|| fault.clone())
        });
        sim.create(train("job", &SMALL)).await;
        sim.network.take_calls();
        sim.advance(600).await;
        let writes = sim.network.take_calls().iter().filter(|c| c.writes()).count();
        assert_within(writes, 10..150, format_args!("{case}: writes in ten minutes"));
        assert_eq!(sim.pods_now().len(), 4, "{case}");
        let is_stored = case != "all";
        let services = sim.services_now();
        let services = services.iter().filter(|name| name.starts_with("job-"));
        assert_eq!(services.count(), if is_stored { 4 } else { 0 }, "{case}");
        assert_eq!(
            event_count(&sim, "FailedCreatePod"),
            usize::from(is_stored),
            "{case}"
        );
        settle_and_check(&mut sim).await;
        for job in ["early", "job"] {
            assert_ends(&sim, job, "Succeeded", case);
            assert_made(&sim, &format!("pods {job}-worker-0"), 1, case);
        }
        assert_eq!(event_count(&sim, "MXJobSucceeded"), 2, "{case}");
    }
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
    // The status of an invalid job is refused until the job is edited.
    sim.create(train("bad", &[("Scheduler", 1), ("Worker", -1)]))
        .await;
    sim.advance(3_600).await;
    assert_eq!(event_count(&sim, "MXJobFailedValidation"), 1);
    let calls = sim.network.take_calls();
    let tries = |job: &str| {
        calls
            .iter()
            .filter(|c| c.is("patch", "mxjobs/status") && c.name == job)
            .count()
    };
    assert_eq!(tries("bad"), 1);
    assert!(
        (10..80).contains(&tries("job")),
        "{} tries in an hour",
        tries("job")
    );
    assert_eq!(sim.pods_now().len(), 8, "the others' pods run all the same");
    let mended = worker(json!({"replicas": 1}));
    edit(&sim, "mxjobs", "bad", mended).await;
    settle_and_check(&mut sim).await;
    for job in ["early", "job", "bad"] {
        assert_ends(&sim, job, "Succeeded", job);
        assert_made(&sim, &format!("pods {job}-worker-0"), 1, job);
    }
}

/// The cluster is restored to an earlier moment. Deleted objects are back with their old UIDs, newer objects are
/// gone, and a recorded end is undone. Resource versions continue, as they should, or fall back.
#[tokio::test(start_paused = true)]
async fn etcd_is_restored_from_a_backup() {
    for versions in [Versions::GoOn, Versions::GoBack] {
        for (saved, at) in [(0, 20), (10, 20), (10, 110), (50, 230), (10, 600)] {
            let mut sim = stale(succeeds, 600_000, 600_000);
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
                assert_ends(&sim, job, "Succeeded", format_args!("{case}: {job}"));
            }
            assert!(sim.stored("mxjobs", "new").is_null(), "{case}");
            assert!(sim.pods_now().is_empty(), "{case}: {:?}", sim.pods_now());
            settle_and_check(&mut sim).await;
        }
    }
}

/// A restored server contains a deleted job and its pods again. The job is listed long before the pods. A response that
/// names a pod does not help a watch that has passed the pod's version.
#[tokio::test(start_paused = true)]
async fn restored_pods_that_no_watch_shows_yet_are_tried_with_a_pause() {
    let mut sim = sim_of(|_, _| Runs, json!({})).await;
    sim.advance(10).await;
    sim.back_up();
    sim.delete("job").await;
    sim.advance(10).await;
    for verb in ["list", "watch"] {
        let down = Refused(503, "ServiceUnavailable");
        sim.network.fail_next(verb, "pods", usize::MAX, down);
    }
    sim.restore(Versions::GoOn);
    sim.network.take_calls();
    let events = sim.events().len();
    sim.advance(10).await;
    let calls = ["get", "create"].map(|verb| sim.network.count(verb, "pods"));
    assert!(
        (4..=20).contains(&calls[0]) && calls[1] == 0,
        "{calls:?} calls in ten seconds"
    );
    assert_eq!(sim.events()[events..], [""; 0], "nothing restarts");
    settle_and_check(&mut sim).await;
    assert_eq!(sim.pods_now().len(), 4);
    assert_eq!(sim.status("job")["restartCount"], json!(null));
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_drops_a_part_of_the_status_causes_few_writes() {
    let sim = Simulation::new(|_, _| Runs);
    let mut definition = serde_json::to_value(MXJob::definition()).unwrap();
    let known = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
    let known = definition
        .pointer_mut(known)
        .and_then(|known| known.as_object_mut());
    known.unwrap().remove("recovery").unwrap();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    call(&sim, "POST", path, definition).await.unwrap();
    sim.create(train("job", &SMALL)).await;
    sim.advance(3_600).await;
    assert_eq!(sim.conditions("job"), "Created Running");
    let writes = sim.network.count("patch", "mxjobs/status");
    assert!(writes < 60, "{writes} writes in an hour");
    sim.assert_no_violations();
}
