//! Responses to deletes, while no watch delivers their effect.

use serde_json::json;
use training_job_simulation::faults::CallFault::{Garbled, Refused, Status};
use training_job_simulation::faults::PodFate::Runs;
use training_job_simulation::simulation::Simulation;
use training_job_simulation::world::job;

use crate::harness::{
    created_and_deleted, edit, edit_job, event_count, make, remove, settle_and_check, sim_of, worker,
};

/// Returns a simulation with a running job in the operator's caches. The watches of `frozen` are silent from now on.
async fn sim(frozen: &str) -> Simulation {
    let sim = sim_of(|_, _| Runs, json!({})).await;
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

/// The numbers of calls after each response to a delete. The object counts as deleted if the response, or a read after a
/// conflict, shows that it is gone or that another object has its name.
#[tokio::test(start_paused = true)]
async fn a_delete_gets_each_response() {
    let conflict = || Refused(409, "Conflict");
    let error = || Refused(500, "InternalError");
    let all = usize::MAX;
    // The faults of the first deletes and of the first read, and the numbers of additional deletes and of reads.
    let rows = [
        ("a status of success is a response", Status, all, None, (0, 0)),
        (
            "a status of failure with the code 200",
            Refused(200, "InternalError"),
            2,
            None,
            (2, 0),
        ),
        ("an error", error(), 2, None, (2, 0)),
        ("no right", Refused(403, "Forbidden"), 2, None, (2, 0)),
        (
            "a conflict although it took effect",
            Garbled(409, "Conflict"),
            1,
            None,
            (0, 1),
        ),
        ("a conflict", conflict(), 1, None, (1, 1)),
        (
            "a conflict, and the read fails",
            conflict(),
            1,
            Some(error()),
            (1, 1),
        ),
        (
            "a conflict, and a proxy finds nothing",
            conflict(),
            1,
            Some(Refused(404, "NotFound")),
            (1, 1),
        ),
    ];
    for (case, fault, times, read, (deletes, gets)) in &rows {
        // A pod that is being deleted still has its name.
        let plurals = if *gets > 0 {
            &["services"][..]
        } else {
            &["pods", "services"]
        };
        for &plural in plurals {
            let mut sim = sim(plural).await;
            sim.network.fail_next("delete", plural, *times, fault.clone());
            if let Some(fault) = read {
                sim.network.fail_next("get", plural, 1, fault.clone());
            }
            shrink(&sim).await;
            sim.advance(60).await;
            let expected = (deleted(plural) + deletes, *gets);
            assert_eq!(calls(&sim, plural), expected, "{plural}: {case}");
            assert_eq!(
                created_and_deleted(&sim, &format!("{plural} job-worker-1")),
                (1, 1),
                "{plural}: {case}"
            );
            settle_and_check(&mut sim).await;
        }
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
    edit_job(&sim, worker(json!({"replicas": 2}))).await;
    sim.advance(60).await;
    assert_eq!(event_count(&sim, "FailedCreatePod"), 1);
    assert!(remove(&sim, "pods", "job-worker-1").await);
    sim.advance(400).await;
    settle_and_check(&mut sim).await;
    assert_eq!(created_and_deleted(&sim, "pods job-worker-1"), (3, 2));
}
