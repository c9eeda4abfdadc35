//! Objects that cannot be parsed.

use serde_json::json;
use training_job_simulation::faults::PodFate::{Runs, Succeeds};
use training_job_simulation::simulation::{SMALL, Simulation, train};

use crate::harness::{assert_ends, edit, either, event_count, remove, settle_and_check};

/// A CRD without a schema accepts any object, before and while the operator runs.
#[tokio::test(start_paused = true)]
async fn a_job_cannot_be_read() {
    let mut sim = Simulation::without_operator(|name, _| either(name, "job", Succeeds(30), Runs));
    let mut odd = train("odd", &SMALL);
    odd["spec"]["mxReplicaSpecs"] = json!("many");
    sim.create(odd.clone()).await;
    sim.create(train("job", &SMALL)).await;
    sim.create(train("runs", &SMALL)).await;
    sim.start();
    sim.advance(10).await;
    let pods = sim.pods_now();
    // A running job that can no longer be parsed is not deleted.
    edit(
        &sim,
        "mxjobs",
        "runs",
        json!({"spec": {"runPolicy": {"backoffLimit": "three"}}}),
    )
    .await;
    sim.cluster.compact();
    sim.cluster.cut_watches(None);
    odd["metadata"]["name"] = json!("odder");
    odd["spec"] = json!([1, 2]);
    sim.create(odd).await;
    sim.advance(10).await;
    assert_eq!(sim.pods_now(), pods, "its pods run on");
    assert_eq!(sim.conditions("runs"), "Created Running");
    assert_eq!(sim.conditions("odd"), "Failed");
    assert_eq!(sim.conditions("odder"), "Failed");
    sim.advance(3_600).await;
    assert_ends(&sim, "job", "Succeeded", "");
    assert_eq!(event_count(&sim, "MXJobFailedValidation"), 3, "each is told once");
    // When the job is deleted, all its children go with it.
    edit(
        &sim,
        "mxjobs",
        "runs",
        json!({"metadata": {"labels": {"a": "b"}}}),
    )
    .await;
    for name in ["odd", "odder", "runs"] {
        assert!(remove(&sim, "mxjobs", name).await);
    }
    settle_and_check(&mut sim).await;
    assert_eq!(sim.pods_now().len(), 4, "{:?}", sim.pods_now());
}
