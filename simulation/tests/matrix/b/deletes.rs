//! What the server says to deletes, of which no watch tells whether they have taken effect.

use serde_json::json;
use training_job_simulation::fault::Fault::{self, Garbled, Refused, Status};
use training_job_simulation::job;
use training_job_simulation::kubelet::Fate::Runs;
use training_job_simulation::world::{SMALL, World, train};

use crate::stage::{edit, made, make, remove, rest, told, worker};

/// A job of which everything runs, and is known to; of its pods or services no watch tells from now on.
async fn world(frozen: &str) -> World {
    let world = World::new(|_, _| Runs);
    world.create(train("job", &SMALL)).await;
    world.pass(10).await;
    assert_eq!(world.conditions("job"), "Created Running");
    world.cluster.freeze_watches(Some(frozen));
    world.network.take();
    world
}

/// Asks the operator for deletes: one worker, of two, goes.
async fn shrink(world: &World) {
    edit(world, "mxjobs", "job", worker(json!({"replicas": 1}))).await;
}

/// How many deletes and reads of these there were, without the watches' lists.
fn calls(world: &World, plural: &str) -> (usize, usize) {
    (
        world.network.count("delete", plural),
        world.network.count("get", plural),
    )
}

/// Servers answer a delete with the object, or with a status.
#[tokio::test(start_paused = true)]
async fn b10_a_status_that_speaks_of_success_is_an_answer_to_a_delete() {
    for plural in ["pods", "services"] {
        let mut world = world(plural).await;
        world.network.fault("delete", plural, usize::MAX, Status);
        shrink(&world).await;
        world.pass(60).await;
        assert_eq!(calls(&world, plural), (1, 0), "{plural}");
        rest(&mut world).await;
    }
}

/// A refusal that comes with the code of a success is one all the same.
#[tokio::test(start_paused = true)]
async fn b10_a_status_that_speaks_of_failure_is_none() {
    for plural in ["pods", "services"] {
        let mut world = world(plural).await;
        world
            .network
            .fault("delete", plural, 2, Refused(200, "InternalError"));
        shrink(&world).await;
        world.pass(60).await;
        assert_eq!(calls(&world, plural), (3, 0), "{plural}");
        assert_eq!(
            made(&world, &format!("{plural} job-worker-1")),
            (1, 1),
            "{plural}"
        );
        rest(&mut world).await;
    }
}

/// The name is another object's by now, which is found out by one read, and is none of the job's business until the
/// job wants the name again.
#[tokio::test(start_paused = true)]
async fn b13_what_it_deletes_has_made_room_for_another() {
    let mut world = world("pods").await;
    assert!(remove(&world, "pods", "job-worker-1").await);
    let another = job::foreign("pods", &json!({"name": "job-worker-1"}));
    make(&world, "pods", another).await;
    shrink(&world).await;
    world.pass(100).await;
    assert_eq!(calls(&world, "pods"), (1, 1));
    edit(&world, "mxjobs", "job", worker(json!({"replicas": 2}))).await;
    world.pass(1).await;
    assert_eq!(told(&world, "FailedCreatePod"), 1);
    assert!(remove(&world, "pods", "job-worker-1").await);
    world.pass(400).await;
    rest(&mut world).await;
    assert_eq!(made(&world, "pods job-worker-1"), (3, 2));
}

/// A conflict says nothing of what is there: that is read, and only what is gone, or another's, counts as deleted.
#[tokio::test(start_paused = true)]
async fn b13_a_delete_conflicts() {
    let conflict = |world: &World, fault: Fault| world.network.fault("delete", "services", 1, fault);
    // It was deleted nevertheless.
    let mut it = world("services").await;
    conflict(&it, Garbled(409, "Conflict"));
    shrink(&it).await;
    it.pass(60).await;
    assert_eq!(calls(&it, "services"), (1, 1));
    rest(&mut it).await;
    // It was not; what was read says so, or nothing.
    for read in [
        None,
        Some(Refused(500, "InternalError")),
        Some(Refused(404, "NotFound")),
    ] {
        let mut it = world("services").await;
        conflict(&it, Refused(409, "Conflict"));
        read.iter()
            .for_each(|fault| it.network.fault("get", "services", 1, fault.clone()));
        shrink(&it).await;
        it.pass(60).await;
        assert_eq!(calls(&it, "services"), (2, 1), "{read:?}");
        assert_eq!(made(&it, "services job-worker-1"), (1, 1), "{read:?}");
        rest(&mut it).await;
    }
}

/// Other refusals are answers, and nothing is read.
#[tokio::test(start_paused = true)]
async fn b6_a_refused_delete_is_tried_again_without_a_read() {
    for fault in [Refused(500, "InternalError"), Refused(403, "Forbidden")] {
        let mut world = world("pods").await;
        world.network.fault("delete", "pods", 2, fault.clone());
        shrink(&world).await;
        world.pass(60).await;
        assert_eq!(calls(&world, "pods"), (3, 0), "{fault:?}");
        rest(&mut world).await;
    }
}
