//! Scenarios of jobs with a quota for one, each undisturbed and with the operator killed at each turn.

use kube::api::DynamicObject;
use serde_json::json;

use super::process::Queues;
use super::queue::is_suspended;
use crate::jobs::{self, JAX, Kind, MPI_SSH, PADDLE, PODS, PYTORCH, TF, XGBOOST};
use crate::stage::{Operators, Stage, a_worker, is};

/// The tests of a scenario: its name, and a kind of job for each test.
macro_rules! tests {
    ($($story:ident: $quiet:expr, $killed:expr;)*) => {
        mod undisturbed {
            use super::*;
            $(#[tokio::test] async fn $story() { tell(stringify!($story), $quiet, Operators::Stay, super::$story).await; })*
        }
        mod while_operators_are_killed {
            use super::*;
            $(#[tokio::test] async fn $story() { tell(stringify!($story), $killed, Operators::AreKilled, super::$story).await; })*
        }
    };
}

tests! {
    two_jobs_on_a_quota_for_one_run_in_turn: JAX, MPI_SSH;
    a_preempting_job_gets_no_pod_before_the_last_of_the_preempted_one_is_gone: MPI_SSH, JAX;
    a_job_that_is_preempted_before_it_runs_gives_its_room_when_its_pods_are_gone: TF, PADDLE;
    a_template_that_is_edited_while_the_job_waits_is_that_of_its_pods: TF, PYTORCH;
    a_job_that_is_scaled_queues_anew_and_runs_as_large_as_it_was_made: JAX, XGBOOST;
    a_job_that_its_user_resumes_out_of_turn_is_suspended_and_waits_on: PADDLE, JAX;
    a_job_that_fails_gives_its_quota_to_the_next: XGBOOST, PADDLE;
    a_job_whose_workload_is_deleted_queues_anew_and_finishes: JAX, PYTORCH;
    a_job_that_restarts_keeps_its_quota: JAX, PYTORCH;
}

async fn tell(name: &str, kind: Kind, operators: Operators, story: impl AsyncFnOnce(&mut Stage<'_>)) {
    let initials: String = name.split('_').filter_map(|word| word.chars().next()).collect();
    let mut stage = Stage::with_queue(Queues::shared().await, &initials, (kind, operators)).await;
    story(&mut stage).await;
    stage.end();
}

async fn two_jobs_on_a_quota_for_one_run_in_turn(stage: &mut Stage<'_>) {
    stage.create(&stage.job("first")).await;
    stage.runs_on_quota("first").await;
    stage.create(&stage.job("second")).await;
    stage.waits("second").await;
    stage.turn();
    stage.history.expect_none_of("second").await;
    stage.finishes("first", PODS).await;
    stage.runs_on_quota("second").await;
    stage.turn();
    stage.finishes("second", PODS).await;
    stage.history.expect_apart(["first", "second"]).await;
}

/// The pods take five seconds to end. The preempted job has no restarts left, but must finish.
async fn a_preempting_job_gets_no_pod_before_the_last_of_the_preempted_one_is_gone(stage: &mut Stage<'_>) {
    let slow = jobs::with_grace(stage.job("slow"), &stage.kind, 5);
    stage.create(&slow).await;
    stage.runs("slow", PODS).await;
    stage.create(&stage.urgent("urgent")).await;
    let suspended = stage.condition("slow", "Suspended").await;
    assert!(is(&suspended, "Running", "False"), "{suspended:#?}");
    stage.turn();
    stage.runs("urgent", PODS).await;
    stage.history.expect_apart(["slow", "urgent"]).await;
    stage.turn();
    stage.finishes("urgent", PODS).await;
    stage.finishes("slow", PODS).await;
    stage.history.expect_apart(["slow", "urgent"]).await;
}

/// Its pods wait for their images, so none is running.
async fn a_job_that_is_preempted_before_it_runs_gives_its_room_when_its_pods_are_gone(stage: &mut Stage<'_>) {
    stage.nodes.start_pods(false);
    stage.create(&stage.job("slow")).await;
    stage.has("slow", PODS).await;
    stage.create(&stage.urgent("urgent")).await;
    stage.turn();
    stage.has("urgent", PODS).await;
    stage.nodes.start_pods(true);
    stage.finishes("urgent", PODS).await;
    stage.finishes("slow", PODS).await;
    stage.history.expect_apart(["slow", "urgent"]).await;
}

async fn a_template_that_is_edited_while_the_job_waits_is_that_of_its_pods(stage: &mut Stage<'_>) {
    stage.create(&stage.job("first")).await;
    stage.runs("first", PODS).await;
    stage.create(&stage.job("second")).await;
    stage.waits("second").await;
    let container = json!({
        "name": stage.kind.container, "image": "example.com/edited",
        "resources": {"requests": {"cpu": "500m"}}, "env": [{"name": "EDITED", "value": "yes"}],
    });
    let template = json!({"spec": {"containers": [container]}});
    stage
        .edit(
            "second",
            json!({"spec": {stage.kind.specs: {"Worker": {"template": template}}}}),
        )
        .await;
    stage.turn();
    stage.finishes("first", PODS).await;
    let pods = stage.runs("second", PODS).await;
    for pod in pods {
        let (name, spec) = (pod.metadata.name.unwrap(), pod.spec.unwrap());
        let image = spec.containers[0].image.as_deref();
        let edited = name.contains("-worker-");
        assert_eq!(image == Some("example.com/edited"), edited, "{name}: {image:?}");
    }
    stage.finishes("second", PODS).await;
    stage.history.expect_at_most(PODS).await;
}

async fn a_job_that_is_scaled_queues_anew_and_runs_as_large_as_it_was_made(stage: &mut Stage<'_>) {
    let others = stage.kind.others();
    let of_workers = |workers: u32| usize::try_from(others + workers).unwrap();
    let mut job = stage.job("job");
    job["spec"][stage.kind.specs]["Worker"]["replicas"] = 1.into();
    stage.create(&job).await;
    stage.runs("job", of_workers(1)).await;
    stage.edit("job", stage.kind.workers(4 - others)).await;
    stage.turn();
    stage.runs("job", 4).await;
    // This exceeds the whole quota.
    stage.edit("job", stage.kind.workers(5 - others)).await;
    stage.turn();
    stage.waits("job").await;
    stage.has("job", 0).await;
    stage.edit("job", stage.kind.workers(1)).await;
    stage.turn();
    stage.finishes("job", of_workers(1)).await;
}

/// Kueue suspends it again. In the meantime it may have had pods, which are deleted.
async fn a_job_that_its_user_resumes_out_of_turn_is_suspended_and_waits_on(stage: &mut Stage<'_>) {
    stage.create(&stage.job("first")).await;
    stage.runs("first", PODS).await;
    stage.create(&stage.job("second")).await;
    stage.waits("second").await;
    let resumed = stage
        .edit("second", json!({"spec": {"runPolicy": {"suspend": false}}}))
        .await;
    stage.turn();
    let again = |job: &DynamicObject| job.metadata.generation > Some(resumed) && is_suspended(job);
    stage.until("second", again).await;
    stage.waits("second").await;
    stage.has("second", 0).await;
    stage.finishes("first", PODS).await;
    stage.finishes("second", PODS).await;
}

async fn a_job_that_fails_gives_its_quota_to_the_next(stage: &mut Stage<'_>) {
    stage.create(&stage.job("first")).await;
    let pods = stage.runs("first", PODS).await;
    stage.create(&stage.job("second")).await;
    stage.waits("second").await;
    stage.turn();
    let worker = pods
        .iter()
        .filter_map(|pod| pod.metadata.name.as_deref())
        .find(|name| name.contains("-worker-"));
    stage
        .kubelet
        .exits(worker.unwrap(), stage.kind.container, 1)
        .await;
    stage.condition("first", "Failed").await;
    stage.turn();
    stage.finishes("second", PODS).await;
}

/// A restart replaces all pods of a JAXJob, but only one pod of a PyTorchJob.
async fn a_job_that_restarts_keeps_its_quota(stage: &mut Stage<'_>) {
    let mut job = stage.job("first");
    job["spec"]["runPolicy"]["backoffLimit"] = 3.into();
    stage.create(&job).await;
    let before = stage.runs("first", PODS).await;
    stage.create(&stage.job("second")).await;
    stage.waits("second").await;
    let worker = a_worker(&before);
    stage.kubelet.exits(&worker, stage.kind.container, 137).await;
    stage.turn();
    stage.replaced(&before, &worker).await;
    stage.runs("first", PODS).await;
    stage.history.expect_none_of("second").await;
    stage.finishes("first", PODS).await;
    stage.finishes("second", PODS).await;
    stage.history.expect_apart(["first", "second"]).await;
}

async fn a_job_whose_workload_is_deleted_queues_anew_and_finishes(stage: &mut Stage<'_>) {
    stage.create(&stage.job("job")).await;
    let before = stage.runs("job", PODS).await;
    let old = stage.delete_workload("job").await;
    stage.turn();
    let admitted = |workload: &DynamicObject| {
        workload.metadata.uid.as_ref() != Some(&old) && is(workload, "Admitted", "True")
    };
    stage.workload("job", admitted).await;
    let after = stage.runs("job", PODS).await;
    for pod in &before {
        assert!(
            !after.iter().any(|other| other.metadata.uid == pod.metadata.uid),
            "{pod:#?}"
        );
    }
    stage.finishes("job", PODS).await;
    stage.history.expect_at_most(PODS).await;
}

/// All kinds that this version of Kueue supports.
#[tokio::test]
async fn a_job_of_each_kind_is_admitted_and_finishes() {
    let queues = Queues::shared().await;
    for kind in [TF, PYTORCH, XGBOOST, PADDLE, JAX, MPI_SSH] {
        let name = kind.name.to_lowercase();
        let stage = Stage::with_queue(queues, &name, (kind, Operators::Stay)).await;
        stage.create(&stage.job(&name)).await;
        stage.runs(&name, PODS).await;
        stage
            .workload(&name, |workload| {
                is(workload, "PodsReady", "True") || is(workload, "Admitted", "True")
            })
            .await;
        stage.finishes(&name, PODS).await;
        stage
            .workload(&name, |workload| is(workload, "Finished", "True"))
            .await;
        stage.history.expect_at_most(PODS).await;
        stage.end();
    }
}
