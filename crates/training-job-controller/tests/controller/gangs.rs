//! Jobs whose pods a gang scheduler binds.

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, discovery::ApiResource};
use serde_json::json;
use training_job::GangScheduler;
use training_job_simulation::faults::CallFault::Refused;
use training_job_simulation::faults::PodFate::{Fails, Runs};
use training_job_simulation::simulation::{SMALL, Setup, Simulation};
use training_job_testbed::ELASTIC;

use crate::toys::toy_job;

fn groups(sim: &Simulation) -> Api<DynamicObject> {
    let kind = GangScheduler::Volcano.pod_group();
    let version = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
    let kind = ApiResource::from_gvk_with_plural(&version, kind.plural);
    Api::default_namespaced_with(sim.user.clone(), &kind)
}

#[tokio::test(start_paused = true)]
async fn a_patch_of_a_group_keeps_annotations_of_others() {
    let mut sim = Simulation::with_setup(Setup {
        gang_scheduler: Some(GangScheduler::Volcano),
        ..Setup::toyjobs(|name, attempt| match attempt {
            0 if name.ends_with("worker-1") => Fails(137, 5),
            _ => Runs,
        })
    });
    sim.start();
    let mut job = toy_job("job", &SMALL);
    job["metadata"]["annotations"] = json!({"volcano.sh/preemptable": "true", (ELASTIC): ""});
    sim.create(job).await;
    // The whole job has been restarted.
    sim.advance(60).await;
    let note = json!({"metadata": {"annotations": {"note": "mine"}, "labels": {"label": "mine"}}});
    let note = Patch::Merge(note);
    groups(&sim)
        .patch("job", &PatchParams::default(), &note)
        .await
        .unwrap();
    let before = sim.stored("podgroups", "job");
    sim.edit(
        "job",
        json!({"spec": {"replicaSpecs": {"Worker": {"replicas": 3}}}}),
    )
    .await;
    sim.advance(60).await;
    let after = sim.stored("podgroups", "job");
    assert_eq!(before["spec"]["minMember"], 4);
    assert_eq!(after["spec"]["minMember"], 5);
    let annotations = json!({
        "note": "mine", (ELASTIC): "", "volcano.sh/preemptable": "true", "training.kubeflow.org/restart-attempt": "1",
    });
    assert_eq!(after["metadata"]["annotations"], annotations);
    assert_eq!(after["metadata"]["labels"], before["metadata"]["labels"]);
    sim.assert_no_violations();
}

/// The job runs on, and nothing else shows that one of its objects is outdated.
#[tokio::test(start_paused = true)]
async fn a_patch_that_is_refused_is_in_the_status_until_it_succeeds() {
    let mut sim = Simulation::with_setup(Setup {
        gang_scheduler: Some(GangScheduler::Volcano),
        ..Setup::toyjobs(|_, _| Runs)
    });
    sim.start();
    let mut job = toy_job("job", &SMALL);
    job["metadata"]["annotations"] = json!({ (ELASTIC): "" });
    sim.create(job).await;
    sim.advance(60).await;
    sim.network
        .fail_next("patch", "podgroups", usize::MAX, Refused(422, "Invalid"));
    let more = json!({"spec": {"replicaSpecs": {"Worker": {"replicas": 3}}}});
    sim.edit("job", more).await;
    sim.advance(60).await;
    let since = sim.status("job")["waitingSince"].clone();
    assert_eq!(sim.status("job")["waitingReason"], "FailedPatchPodGroup");
    assert!(
        sim.conditions("job").ends_with("Running"),
        "{}",
        sim.conditions("job")
    );
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
