//! Calls that are denied until a user fixes the cause.

use serde_json::json;
use training_job_mxnet::MXJob;
use training_job_simulation::call::Call;
use training_job_simulation::faults::CallFault::{self, Refused};
use training_job_simulation::faults::PodFate::{Runs, Succeeds};
use training_job_simulation::simulation::{SMALL, Setup, Simulation, train};
use training_job_simulation::world::job::{self, JobType};
use training_job_tensorflow::TFJob;

use crate::harness::{
    assert_ends, assert_made, assert_within, edit_job, either, event_count, make, metric, policy,
    settle_and_check, sim_of, start_with_metrics, until, with_policy, worker,
};

/// One of the operator's permissions is missing for an hour, while one job is to be created and another to be cleaned
/// up. The job gets one event, and no condition, because the job itself is correct.
#[tokio::test(start_paused = true)]
async fn a_right_is_taken_away_and_given_back() {
    let denied = Refused(403, "Forbidden");
    // A status that is not found is denied as well, because the job is there.
    let absent = Refused(404, "NotFound");
    // The job that waits, and its reason.
    let rights = [
        ("create", "pods", &denied, ("job", "FailedCreatePod")),
        ("create", "services", &denied, ("job", "FailedCreateService")),
        ("delete", "pods", &denied, ("old", "FailedDeletePod")),
        ("delete", "services", &denied, ("old", "FailedDeleteService")),
        ("patch", "mxjobs/status", &denied, ("", "")),
        ("patch", "mxjobs/status", &absent, ("", "")),
        ("create", "events", &denied, ("", "")),
        ("list", "pods", &denied, ("", "")),
        ("watch", "mxjobs", &denied, ("", "")),
        ("list", "", &denied, ("", "")),
    ];
    for (verb, resource, fault, (waiting, reason)) in rights {
        let mut sim = Simulation::new(|name, _| either(name, "old", Succeeds(60), Runs));
        sim.create(with_policy("old", &SMALL, json!({"cleanPodPolicy": "All"})))
            .await;
        sim.advance(30).await;
        sim.network.fail_next(verb, resource, usize::MAX, fault.clone());
        if verb == "list" || verb == "watch" {
            sim.cluster.compact();
            sim.cluster.cut_watches(None);
        }
        sim.network.take_calls();
        sim.create(train("job", &SMALL)).await;
        sim.advance(3_600).await;
        let case = format!("{fault:?} for {verb} {resource}");
        let tries = sim.network.count(verb, resource);
        assert_within(tries, 1..=400, format_args!("{case}: tries in an hour"));
        let failures = sim.events().iter().filter(|e| e.starts_with("Failed")).count();
        assert!(failures <= 2, "{case}: {:?}", sim.events());
        if !waiting.is_empty() {
            assert_eq!(sim.status(waiting)["waitingReason"], reason, "{case}");
        }
        sim.network.heal();
        sim.advance(400).await;
        settle_and_check(&mut sim).await;
        for job in ["job", "old"] {
            assert_eq!(sim.status(job)["waitingReason"], json!(null), "{case}");
        }
        assert_eq!(sim.conditions("job"), "Created Running", "{case}");
        assert_ends(&sim, "old", "Succeeded", &case);
    }
}

/// The API server does not serve a kind when the operator starts, and again while its job runs. The job's pods keep
/// running, a metric shows the absence, and jobs of other kinds are not affected.
#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_stops_no_other() {
    let mut sim = Simulation::with_setup(Setup {
        job_types: JobType::THREE_KINDS,
        ..Setup::mxjobs(|_, _| Succeeds(300))
    });
    let absent = |call: &Call| {
        call.resource
            .starts_with("mxjobs")
            .then_some(Refused(404, "NotFound"))
    };
    sim.network.add_rule(absent);
    let metrics = start_with_metrics(&mut sim, 16, |operator| {
        operator.manage::<MXJob>().manage::<TFJob>()
    });
    let is_absent = || metric(&metrics, &["crd_missing{resource=\"mxjobs.kubeflow.org\"}"]);
    for time in ["at the start", "later"] {
        let name = time.replace(' ', "-");
        let other = job::new(JobType::TensorFlow, &name, &[("Chief", 1)], "Never");
        make(&sim, "tfjobs", other).await;
        sim.advance(10).await;
        let pod = sim.stored("pods", &format!("{name}-chief-0"));
        assert_eq!(pod["status"]["phase"], "Running", "{time}");
        sim.advance(400).await;
        assert_eq!(is_absent(), 1.0, "{time}");
        sim.network.take_calls();
        sim.advance(800).await;
        let calls = sim.network.take_calls();
        assert!(calls.len() < 120, "{time}: {} calls in 800 s", calls.len());
        let is_change = |call: &Call| call.verb == "delete" || call.verb == "create";
        assert!(!calls.iter().any(is_change), "{time}: {calls:?}");
        sim.network.heal();
        sim.advance(120).await;
        assert_eq!(is_absent(), 0.0, "{time}");
        if time == "at the start" {
            sim.create(train("job", &SMALL)).await;
            sim.advance(10).await;
            assert_eq!(sim.conditions("job"), "Created Running");
            sim.network.add_rule(absent);
            sim.cluster.cut_watches(Some("mxjobs"));
        }
    }
    settle_and_check(&mut sim).await;
    assert_ends(&sim, "job", "Succeeded", "");
    assert_made(&sim, "pods job-worker-0", 1, "");
}

/// A proxy between the operator and the API server responds with 404 to lists of pods. If the operator treated that
/// as a cluster without pods, it would restart running jobs.
#[tokio::test(start_paused = true)]
async fn pods_that_are_not_found_are_not_taken_for_gone() {
    let mut sim = sim_of(|_, _| Runs, json!({})).await;
    sim.advance(30).await;
    sim.kill().await;
    let is_list = |call: &Call| call.is("list", "pods");
    sim.network
        .add_rule(move |call| is_list(call).then_some(Refused(404, "NotFound")));
    sim.network.take_calls();
    sim.start();
    sim.advance(600).await;
    let calls = sim.network.take_calls();
    assert!(calls.iter().all(|call| !call.writes()), "{calls:?}");
    sim.network.heal();
    sim.advance(60).await;
    settle_and_check(&mut sim).await;
    assert_eq!(sim.conditions("job"), "Created Running");
    assert!(
        sim.pods_now().iter().all(|pod| !pod.contains('+')),
        "{:?}",
        sim.pods_now()
    );
}

/// One pod of four is refused permanently, for any reason. The others are created, the job has one event, and it
/// continues when its spec is fixed. With a deadline, it still ends at the deadline.
#[tokio::test(start_paused = true)]
async fn a_pod_that_is_invalid_or_too_large_is_tried_again_when_the_job_is_edited() {
    for fault in [Refused(413, "RequestEntityTooLarge"), Refused(422, "Invalid")] {
        one_pod_is_refused(fault).await;
    }
}

async fn one_pod_is_refused(fault: CallFault) {
    let mut sim = Simulation::new(|_, _| Runs);
    let created = |call: &Call| call.is("create", "pods");
    let mut number = 0;
    let refused = fault.clone();
    // The fourth is worker-1. Later creations are retries.
    sim.network.add_rule(move |call| {
        number += u32::from(created(call));
        (created(call) && number >= 4).then(|| refused.clone())
    });
    sim.create(train("job", &SMALL)).await;
    sim.advance(3_600).await;
    assert_eq!(sim.pods_now().len(), 3, "{fault:?}");
    assert_eq!(event_count(&sim, "FailedCreatePod"), 1, "{fault:?}");
    let tries = sim.network.count("create", "pods") - 3;
    assert_within(tries, 5..40, format_args!("{fault:?}: tries in an hour"));
    sim.network.heal();
    edit_job(
        &sim,
        worker(json!({"template": {"metadata": {"labels": {"a": "b"}}}})),
    )
    .await;
    sim.advance(10).await;
    assert_eq!(sim.pods_now().len(), 4, "{fault:?}: an edit is tried at once");
    settle_and_check(&mut sim).await;

    let mut sim = Simulation::new(|_, _| Runs);
    sim.network.fail_next("create", "pods", usize::MAX, fault.clone());
    sim.create(train("job", &SMALL)).await;
    edit_job(&sim, policy(json!({"activeDeadlineSeconds": 900}))).await;
    sim.advance(905).await;
    assert_ends(&sim, "job", "Failed", format_args!("{fault:?}"));
    settle_and_check(&mut sim).await;
}

/// The first of a hundred pods is refused, for a reason that does not affect the others.
#[tokio::test(start_paused = true)]
async fn a_refused_object_keeps_no_other_waiting() {
    let mut sim = Simulation::new(|_, _| Runs);
    sim.network
        .fail_next("create", "pods", 1, Refused(422, "Invalid"));
    sim.create(train("job", &[("Scheduler", 1), ("Worker", 100)]))
        .await;
    until(|| event_count(&sim, "FailedCreatePod") > 0).await;
    assert_eq!(sim.pods_now().len(), 100, "all others are made in the same pass");
    sim.advance(10).await;
    settle_and_check(&mut sim).await;
}
