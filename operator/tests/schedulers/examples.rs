//! The jobs of docs/users/gangs.md, with the real schedulers and queues.

use serde_json::{Value, json};
use training_operator_testing::program::root;

use crate::built;
use crate::gangs::process::{Gangs, Scheduler};
use crate::jobs::{MX, PYTORCH};
use crate::kueue::process::Queues;
use crate::stage::{Operators, Stage};

/// Returns the job of this name on the page.
fn example(name: &str) -> Value {
    let page = std::fs::read_to_string(root().join("docs/users/gangs.md")).unwrap();
    let blocks = page.split("```yaml\n").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split("```").next());
    let mut jobs = blocks.map(|block| serde_saphyr::from_str::<Value>(block).unwrap());
    jobs.find(|job| job["metadata"]["name"] == name).unwrap()
}

#[tokio::test]
async fn a_job_in_a_queue_runs() {
    let queues = Queues::shared().await;
    let stage = Stage::with_queue(queues, "page", (PYTORCH, Operators::Stay)).await;
    let queue = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
        "metadata": {"name": "team-a", "namespace": stage.namespace}, "spec": {"clusterQueue": stage.namespace},
    });
    built::apply(&queues.plane, &[queue]).await;
    stage.create(&example("in-turn")).await;
    stage.runs("in-turn", 2).await;
    stage.finishes("in-turn", 2).await;
    stage.end();
}

async fn a_gang_runs(scheduler: Scheduler) {
    let gangs = Gangs::shared(scheduler).await;
    let _alone = gangs.alone().await;
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000,
    });
    built::apply(&gangs.plane, &[class]).await;
    let stage = Stage::with_gangs(gangs, scheduler, (MX, Operators::Stay), (1, 6)).await;
    stage.create(&example("together")).await;
    stage.runs("together", 4).await;
    stage.kubelet.succeeds("together-scheduler-0").await;
    stage.condition("together", "Succeeded").await;
    stage.end();
}

#[tokio::test]
async fn a_gang_runs_under_volcano() {
    a_gang_runs(Scheduler::Volcano).await;
}

#[tokio::test]
async fn a_gang_runs_under_coscheduling() {
    a_gang_runs(Scheduler::Coscheduling).await;
}
