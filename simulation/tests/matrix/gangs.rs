//! Jobs whose pods a gang scheduler binds.

use serde_json::json;
use training_job::GangScheduler;
use training_job_simulation::faults::CallFault::Refused;
use training_job_simulation::faults::PodFate::{Fails, Runs};
use training_job_simulation::simulation::{SMALL, Setup, Simulation};
use training_job_simulation::world::direct::path_of;
use training_job_testbed::ELASTIC;

use crate::harness::{PodFates, assert_ends, call, edit_job, toy_job};

/// Creates a cluster with a gang scheduler, and an elastic job that runs.
async fn gang(pod_fates: PodFates) -> Simulation {
    let mut sim = Simulation::with_setup(Setup {
        gang_scheduler: Some(GangScheduler::Volcano),
        ..Setup::toyjobs(pod_fates)
    });
    sim.start();
    let mut job = toy_job("job", &SMALL);
    job["metadata"]["annotations"] = json!({"volcano.sh/preemptable": "true", (ELASTIC): ""});
    sim.create(job).await;
    sim.advance(60).await;
    sim
}

async fn scale_up(sim: &Simulation) {
    edit_job(
        sim,
        json!({"spec": {"replicaSpecs": {"Worker": {"replicas": 3}}}}),
    )
    .await;
    sim.advance(60).await;
}

/// The whole job is restarted once, but not when its elastic role grows.
#[tokio::test(start_paused = true)]
async fn a_patch_of_a_group_keeps_annotations_of_others() {
    let sim = gang(|name, attempt| match attempt {
        0 if name.ends_with("worker-1") => Fails(137, 5),
        _ => Runs,
    })
    .await;
    let note = json!({"metadata": {"annotations": {"note": "mine"}, "labels": {"label": "mine"}}});
    let group = sim.cluster.get("podgroups", "default", "job").unwrap();
    call(&sim, "PATCH", &path_of(&group, "podgroups"), note)
        .await
        .unwrap();
    let before = (sim.stored("podgroups", "job"), sim.pods_now());
    scale_up(&sim).await;
    let after = sim.stored("podgroups", "job");
    assert_eq!(before.0["spec"]["minMember"], json!(4));
    assert_eq!(after["spec"]["minMember"], json!(5));
    let annotations = json!({
        "note": "mine", (ELASTIC): "", "volcano.sh/preemptable": "true", "training.kubeflow.org/restart-attempt": "1",
    });
    assert_eq!(after["metadata"]["annotations"], annotations);
    assert_eq!(after["metadata"]["labels"], before.0["metadata"]["labels"]);
    assert_eq!(sim.pods_now()[..4], before.1);
    sim.assert_no_violations();
}

/// The job runs on, and nothing else shows that one of its objects is outdated.
#[tokio::test(start_paused = true)]
async fn a_patch_that_is_refused_is_in_the_status_until_it_succeeds() {
    let mut sim = gang(|_, _| Runs).await;
    sim.network
        .fail_next("patch", "podgroups", usize::MAX, Refused(422, "Invalid"));
    scale_up(&sim).await;
    let since = sim.status("job")["waitingSince"].clone();
    assert_eq!(sim.status("job")["waitingReason"], "FailedPatchPodGroup");
    assert_ends(&sim, "job", "Running", "");
    sim.kill().await;
    sim.start();
    sim.advance(600).await;
    assert_eq!(sim.status("job")["waitingSince"], since);
    sim.network.heal();
    sim.advance(400).await;
    assert_eq!(sim.status("job")["waitingReason"], json!(null));
    assert_eq!(sim.stored("podgroups", "job")["spec"]["minMember"], 5);
    sim.assert_no_violations();
}
