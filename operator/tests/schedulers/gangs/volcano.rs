//! Volcano's queues.

use serde_json::json;

use super::process::{Gangs, Scheduler, open_queue};
use crate::built;
use crate::jobs::{MX, PODS, PYTORCH};
use crate::stage::{Operators, Stage};

#[tokio::test]
async fn of_two_jobs_in_a_queue_for_one_the_other_has_no_pod_on_free_nodes() {
    let gangs = Gangs::shared(Scheduler::Volcano).await;
    let _alone = gangs.alone().await;
    let queue = json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "four"},
        "spec": {"weight": 1, "capability": {"cpu": "4"}},
    });
    built::apply(&gangs.plane, &[queue]).await;
    open_queue(&gangs.plane, "four").await;
    let mut stage = Stage::with_gangs(gangs, Scheduler::Volcano, (MX, Operators::AreKilled), (4, 4)).await;
    for name in ["a", "b"] {
        let mut job = stage.gang(name);
        job["spec"]["runPolicy"]["schedulingPolicy"]["queue"] = "four".into();
        stage.create(&job).await;
    }
    let first = stage.one_runs(PODS).await;
    let second = if first == "a" { "b" } else { "a" };
    stage.turn();
    stage.has(second, 0).await;
    stage.finishes(&first, PODS).await;
    stage.turn();
    stage.finishes(second, PODS).await;
    stage.history.expect_apart(["a", "b"]).await;
    stage.end();
}

#[tokio::test]
async fn a_job_without_its_queue_reports_it_and_runs_once_it_exists() {
    let gangs = Gangs::shared(Scheduler::Volcano).await;
    let _alone = gangs.alone().await;
    let stage = Stage::with_gangs(gangs, Scheduler::Volcano, (PYTORCH, Operators::Stay), (1, 4)).await;
    let mut job = stage.gang("job");
    job["spec"]["runPolicy"]["schedulingPolicy"]["queue"] = "late".into();
    stage.create(&job).await;
    let why = stage.event("job", "PodGroupWaits").await;
    assert!(why.contains("queue late"), "{why}");
    stage.has("job", 0).await;
    let queue = json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "late"},
        "spec": {"weight": 1},
    });
    built::apply(&gangs.plane, &[queue]).await;
    open_queue(&gangs.plane, "late").await;
    stage.finishes("job", PODS).await;
    stage.end();
}
