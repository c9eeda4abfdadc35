//! Responses to deletes, while no watch delivers their effect.

use serde_json::json;
use training_job_simulation::faults::CallFault::{self, Garbled, Refused, Status};
use training_job_simulation::faults::PodFate::Runs;
use training_job_simulation::simulation::{SMALL, Simulation, train};
use training_job_simulation::world::job;

use crate::harness::{created_and_deleted, edit, event_count, make, remove, settle_and_check, worker};

/// Returns a simulation with a running job in the operator's caches. The watches of `frozen` are silent from now on.
async fn sim(frozen: &str) -> Simulation {
    let sim = Simulation::new(|_, _| Runs);
    sim.create(train("job", &SMALL)).await;
    sim.advance(10).await;
    assert_eq!(sim.conditions("job"), "Created Running");
    sim.cluster.freeze_watches(Some(frozen));
    sim.network.take_calls();
    sim
}

/// Scales two workers down to one. The operator deletes the worker's service, and all pods, because the job restarts.
async fn shrink(sim: &Simulation) {
    edit(sim, "mxjobs", "job", worker(json!({"replicas": 1}))).await;
}

/// Returns the number of objects that [`shrink`] lets the operator delete.
fn deleted(plural: &str) -> usize {
    if plural == "pods" { 4 } else { 1 }
}

/// Returns the numbers of deletes and gets of this plural.
fn calls(sim: &Simulation, plural: &str) -> (usize, usize) {
    (
        sim.network.count("delete", plural),
        sim.network.count("get", plural),
    )
}

/// A server responds to a delete with the object, or with a status.
#[tokio::test(start_paused = true)]
async fn a_status_that_speaks_of_success_is_an_answer_to_a_delete() {
    for plural in ["pods", "services"] {
        let mut sim = sim(plural).await;
        sim.network.fail_next("delete", plural, usize::MAX, Status);
        shrink(&sim).await;
        sim.advance(60).await;
        assert_eq!(calls(&sim, plural), (deleted(plural), 0), "{plural}");
        settle_and_check(&mut sim).await;
    }
}

/// A failure in a body with the status code of a success is still a failure.
#[tokio::test(start_paused = true)]
async fn a_status_that_speaks_of_failure_is_none() {
    for plural in ["pods", "services"] {
        let mut sim = sim(plural).await;
        sim.network
            .fail_next("delete", plural, 2, Refused(200, "InternalError"));
        shrink(&sim).await;
        sim.advance(60).await;
        assert_eq!(calls(&sim, plural), (deleted(plural) + 2, 0), "{plural}");
        assert_eq!(
            created_and_deleted(&sim, &format!("{plural} job-worker-1")),
            (1, 1),
            "{plural}"
        );
        settle_and_check(&mut sim).await;
    }
}

/// Another object has the name by now. One read finds that out. The job ignores the object until it needs the name
/// again.
#[tokio::test(start_paused = true)]
async fn deleted_objects_were_replaced_by_others_of_the_same_name() {
    let mut sim = sim("pods").await;
    assert!(remove(&sim, "pods", "job-worker-1").await);
    let another = job::foreign("pods", &json!({"name": "job-worker-1"}));
    make(&sim, "pods", another).await;
    shrink(&sim).await;
    sim.advance(100).await;
    assert_eq!(calls(&sim, "pods"), (deleted("pods"), 1));
    edit(&sim, "mxjobs", "job", worker(json!({"replicas": 2}))).await;
    sim.advance(60).await;
    assert_eq!(event_count(&sim, "FailedCreatePod"), 1);
    assert!(remove(&sim, "pods", "job-worker-1").await);
    sim.advance(400).await;
    settle_and_check(&mut sim).await;
    assert_eq!(created_and_deleted(&sim, "pods job-worker-1"), (3, 2));
}

/// A conflict does not reveal the state of the object, so it is read. It counts as deleted only if it is gone, or if
/// another object has its name.
#[tokio::test(start_paused = true)]
async fn a_delete_conflicts() {
    let conflict = |sim: &Simulation, fault: CallFault| sim.network.fail_next("delete", "services", 1, fault);
    // The delete took effect despite the conflict.
    let mut it = sim("services").await;
    conflict(&it, Garbled(409, "Conflict"));
    shrink(&it).await;
    it.advance(60).await;
    assert_eq!(calls(&it, "services"), (1, 1));
    settle_and_check(&mut it).await;
    // The delete had no effect. The read returns the object, or an error.
    for read in [
        None,
        Some(Refused(500, "InternalError")),
        Some(Refused(404, "NotFound")),
    ] {
        let mut it = sim("services").await;
        conflict(&it, Refused(409, "Conflict"));
        read.iter()
            .for_each(|fault| it.network.fail_next("get", "services", 1, fault.clone()));
        shrink(&it).await;
        it.advance(60).await;
        assert_eq!(calls(&it, "services"), (2, 1), "{read:?}");
        assert_eq!(
            created_and_deleted(&it, "services job-worker-1"),
            (1, 1),
            "{read:?}"
        );
        settle_and_check(&mut it).await;
    }
}

/// After other errors, nothing is read.
#[tokio::test(start_paused = true)]
async fn a_refused_delete_is_tried_again_without_a_read() {
    for fault in [Refused(500, "InternalError"), Refused(403, "Forbidden")] {
        let mut sim = sim("pods").await;
        sim.network.fail_next("delete", "pods", 2, fault.clone());
        shrink(&sim).await;
        sim.advance(60).await;
        assert_eq!(calls(&sim, "pods"), (deleted("pods") + 2, 0), "{fault:?}");
        settle_and_check(&mut sim).await;
    }
}
