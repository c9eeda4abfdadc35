//! Objects that are not what they should be.

use serde_json::json;
use training_job_simulation::kubelet::Fate::{Runs, Succeeds};
use training_job_simulation::world::{SMALL, World, train};

use crate::stage::{edit, remove, rest, told};

/// A definition without a schema lets everything in, before and while the operator runs.
#[tokio::test(start_paused = true)]
async fn c10_a_job_cannot_be_read() {
    let mut world = World::without_operator(|name, _| {
        if name.starts_with("job") {
            Succeeds(30)
        } else {
            Runs
        }
    });
    let mut odd = train("odd", &SMALL);
    odd["spec"]["mxReplicaSpecs"] = json!("many");
    world.create(odd.clone()).await;
    world.create(train("job", &SMALL)).await;
    world.create(train("runs", &SMALL)).await;
    world.start();
    world.pass(10).await;
    let pods = world.pods_now();
    // One that runs becomes one that cannot be read: it is not gone.
    edit(
        &world,
        "mxjobs",
        "runs",
        json!({"spec": {"runPolicy": {"backoffLimit": "three"}}}),
    )
    .await;
    world.cluster.compact();
    world.cluster.cut_watches(None);
    odd["metadata"]["name"] = json!("odder");
    odd["spec"] = json!([1, 2]);
    world.create(odd).await;
    world.pass(10).await;
    assert_eq!(world.pods_now(), pods, "its pods run on");
    assert_eq!(world.conditions("runs"), "Created Running");
    assert_eq!(world.conditions("odd"), "Failed");
    assert_eq!(world.conditions("odder"), "Failed");
    world.pass(3_600).await;
    assert!(world.conditions("job").ends_with("Succeeded"));
    assert_eq!(told(&world, "MXJobFailedValidation"), 3, "each is told once");
    // Deleted, it and all that it had are gone.
    edit(
        &world,
        "mxjobs",
        "runs",
        json!({"metadata": {"labels": {"a": "b"}}}),
    )
    .await;
    for name in ["odd", "odder", "runs"] {
        assert!(remove(&world, "mxjobs", name).await);
    }
    rest(&mut world).await;
    assert_eq!(world.pods_now().len(), 4, "{:?}", world.pods_now());
}
