//! Scenarios of gangs with both schedulers, each undisturbed and with the operator killed at each turn.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DynamicObject, PostParams};
use serde_json::json;
use training_job_testbed::cluster::wait_for_all;

use super::process::{Gangs, Scheduler};
use super::stage;
use crate::built;
use crate::jobs::{JAX, Kind, MPI, MX, PADDLE, PODS, PYTORCH, TF, XGBOOST};
use crate::stage::{Operators, Stage, a_worker};

/// The tests of a scenario: its name, the number of nodes and of CPUs for each, and the kinds of jobs for each test.
macro_rules! tests {
    ($($story:ident on $nodes:expr => $a:expr, $b:expr, $c:expr, $d:expr;)*) => {
        tests!(volcano, Scheduler::Volcano, Operators::Stay, $($story, $nodes, $a;)*);
        tests!(volcano_while_operators_are_killed, Scheduler::Volcano, Operators::AreKilled, $($story, $nodes, $b;)*);
        tests!(coscheduling, Scheduler::Coscheduling, Operators::Stay, $($story, $nodes, $c;)*);
        tests!(
            coscheduling_while_operators_are_killed, Scheduler::Coscheduling, Operators::AreKilled,
            $($story, $nodes, $d;)*
        );
    };
    ($with:ident, $scheduler:expr, $operators:expr, $($story:ident, $nodes:expr, $kinds:expr;)*) => {
        mod $with {
            use super::*;
            $(#[tokio::test] async fn $story() {
                for kind in $kinds {
                    tell($scheduler, (kind, $operators), $nodes, super::$story).await;
                }
            })*
        }
    };
}

/// The capacity in pods of three nodes of two CPUs: one whole job, and half of another.
const ROOM: usize = 6;

tests! {
    of_two_jobs_at_once_one_runs_whole_and_then_the_other on (3, 2) => [MX, JAX], [TF, MPI], [PYTORCH, MPI], [MX, JAX];
    a_worker_that_is_deleted_comes_back_on_a_full_cluster on (1, 4) => [PYTORCH], [MX], [TF], [XGBOOST];
    a_worker_that_is_deleted_before_any_pod_runs_comes_back on (1, 4) => [TF], [PADDLE], [MX], [PYTORCH];
    a_worker_that_is_killed_after_another_has_succeeded_comes_back on (3, 2) => [PYTORCH], [TF], [MX], [PADDLE];
    a_suspended_job_has_neither_pods_nor_a_group_and_runs_when_it_is_resumed on (3, 2) => [XGBOOST, MPI], [MX, JAX], [PADDLE, JAX], [TF, MPI];
    a_job_that_is_too_big_for_ever_has_no_place_and_is_in_nobodys_way on (3, 2) => [MX], [PYTORCH], [XGBOOST], [MX];
    a_job_for_which_there_is_no_room_runs_when_a_node_comes on (1, 2) => [PADDLE], [MX], [MX], [TF];
    a_job_that_restarts_whole_queues_again_whole on (3, 2) => [MX, JAX], [MX, MPI], [MX, MPI], [MX, JAX];
    a_group_of_somebody_else_is_left_alone on (3, 2) => [TF], [MX], [MX], [PYTORCH];
}

async fn tell(
    scheduler: Scheduler,
    actors: (Kind, Operators),
    nodes: (u32, u32),
    story: impl AsyncFnOnce(&mut Stage<'_>, Scheduler),
) {
    let gangs = Gangs::shared(scheduler).await;
    let _alone = gangs.alone().await;
    let mut stage = Stage::with_gangs(gangs, scheduler, actors, nodes).await;
    story(&mut stage, scheduler).await;
    stage.end();
}

async fn of_two_jobs_at_once_one_runs_whole_and_then_the_other(stage: &mut Stage<'_>, _: Scheduler) {
    stage.create(&stage.gang("a")).await;
    stage.create(&stage.gang("b")).await;
    let first = stage.one_runs(PODS).await;
    let second = if first == "a" { "b" } else { "a" };
    stage.turn();
    stage.history.expect_none_of(second).await;
    stage.finishes(&first, PODS).await;
    stage.turn();
    stage.finishes(second, PODS).await;
    // The second job may begin when enough pods of the first have ended.
    stage.history.expect_at_most(ROOM).await;
}

async fn a_worker_that_is_deleted_comes_back_on_a_full_cluster(stage: &mut Stage<'_>, _: Scheduler) {
    stage.create(&stage.gang("job")).await;
    let before = stage.runs("job", PODS).await;
    let worker = a_worker(&before);
    stage.delete_pod(&worker).await;
    stage.turn();
    stage.replaced(&before, &worker).await;
    stage.finishes("job", PODS).await;
}

async fn a_worker_that_is_deleted_before_any_pod_runs_comes_back(stage: &mut Stage<'_>, _: Scheduler) {
    stage.nodes.start_pods(false);
    stage.create(&stage.gang("job")).await;
    let before = stage.is_bound("job", PODS).await;
    let worker = a_worker(&before);
    stage.delete_pod(&worker).await;
    stage.turn();
    stage.replaced(&before, &worker).await;
    stage.is_bound("job", PODS).await;
    stage.nodes.start_pods(true);
    stage.finishes("job", PODS).await;
}

/// An ended pod is no longer a member.
async fn a_worker_that_is_killed_after_another_has_succeeded_comes_back(stage: &mut Stage<'_>, _: Scheduler) {
    let mut job = stage.gang("job");
    job["spec"]["runPolicy"]["restartScope"] = "Replica".into();
    stage.create(&job).await;
    let before = stage.runs("job", PODS).await;
    stage.kubelet.succeeds("job-worker-1").await;
    stage.turn();
    let killed = "job-worker-0";
    stage.kubelet.exits(killed, stage.kind.container, 137).await;
    stage.turn();
    stage.replaced(&before, killed).await;
    stage.pod_runs(killed).await;
    for pod in before
        .iter()
        .map(ResourceExt::name_any)
        .filter(|name| name != "job-worker-1")
    {
        stage.kubelet.succeeds(&pod).await;
    }
    stage.condition("job", "Succeeded").await;
}

async fn a_suspended_job_has_neither_pods_nor_a_group_and_runs_when_it_is_resumed(
    stage: &mut Stage<'_>,
    scheduler: Scheduler,
) {
    stage.create(&stage.gang("job")).await;
    stage.runs("job", PODS).await;
    stage
        .edit("job", json!({"spec": {"runPolicy": {"suspend": true}}}))
        .await;
    stage.turn();
    stage.condition("job", "Suspended").await;
    stage.has("job", 0).await;
    stage.group(scheduler, "job", |group| group.is_none()).await;
    stage
        .edit("job", json!({"spec": {"runPolicy": {"suspend": false}}}))
        .await;
    stage.turn();
    stage.finishes("job", PODS).await;
    stage.group(scheduler, "job", |group| group.is_none()).await;
}

async fn a_job_that_is_too_big_for_ever_has_no_place_and_is_in_nobodys_way(
    stage: &mut Stage<'_>,
    scheduler: Scheduler,
) {
    let mut big = stage.gang("big");
    big["spec"][stage.kind.specs]["Worker"]["replicas"] = 8.into();
    stage.create(&big).await;
    let all = 8 + stage.kind.others();
    let why = stage.event("big", "PodGroupWaits").await;
    if scheduler == Scheduler::Volcano {
        let of = format!(
            "waits in queue default for pods {all}, cpu {all}; Volcano reports no reason in its status"
        );
        assert!(why.contains(&of), "{why}");
    } else {
        let of = format!("waits for pods {all}, cpu {all}; {all} of {all} pods have no node; ");
        assert!(why.contains(&of), "{why}");
    }
    stage.turn();
    stage.create(&stage.gang("small")).await;
    stage.finishes("small", PODS).await;
    stage.history.expect_none_of("big").await;
}

async fn a_job_for_which_there_is_no_room_runs_when_a_node_comes(
    stage: &mut Stage<'_>,
    scheduler: Scheduler,
) {
    stage.create(&stage.gang("job")).await;
    match scheduler {
        Scheduler::Volcano => _ = stage.event("job", "PodGroupWaits").await,
        Scheduler::Coscheduling => stage.has("job", PODS).await,
    }
    stage.turn();
    stage.history.expect_none_of("job").await;
    stage.add_node(4).await;
    stage.finishes("job", PODS).await;
}

/// Another whole job may run first.
async fn a_job_that_restarts_whole_queues_again_whole(stage: &mut Stage<'_>, _: Scheduler) {
    stage.create(&stage.gang("first")).await;
    let before = stage.runs("first", PODS).await;
    stage.create(&stage.gang("second")).await;
    let worker = a_worker(&before);
    stage.kubelet.exits(&worker, stage.kind.container, 137).await;
    stage.turn();
    stage.is_gone(&before, &worker).await;
    let next = stage.one_runs(PODS).await;
    stage.finishes(&next, PODS).await;
    let last = if next == "first" { "second" } else { "first" };
    stage.turn();
    stage.finishes(last, PODS).await;
    stage.history.expect_at_most(ROOM).await;
}

async fn a_group_of_somebody_else_is_left_alone(stage: &mut Stage<'_>, scheduler: Scheduler) {
    let [group, version] = scheduler.pod_group();
    let theirs = json!({
        "apiVersion": format!("{group}/{version}"), "kind": "PodGroup",
        "metadata": {"name": "job", "labels": {"whose": "theirs"}}, "spec": {"minMember": 1},
    });
    let theirs: DynamicObject = serde_json::from_value(theirs).unwrap();
    let groups = stage.groups(scheduler);
    let made = groups.create(&PostParams::default(), &theirs).await.unwrap();
    stage.create(&stage.gang("job")).await;
    stage.turn();
    let why = stage.event("job", "FailedCreatePodGroup").await;
    assert!(why.contains("the name is taken"), "{why}");
    if scheduler == Scheduler::Volcano {
        // The state of that group does not affect this job.
        let let_in = |group: Option<&DynamicObject>| {
            group.is_some_and(|group| group.data["status"]["phase"] == "Inqueue")
        };
        stage.group(scheduler, "job", let_in).await;
        stage.turn();
        stage.has("job", 0).await;
    }
    let after = groups.get("job").await.unwrap();
    assert_eq!(made.data["spec"].clone(), after.data["spec"].clone());
    assert_eq!(made.uid(), after.uid());
    assert_eq!(made.labels(), after.labels());
    assert_eq!(after.metadata.owner_references, None);
}

/// The first scenario without gangs: three nodes for six pods have some pods of both jobs. An incomplete job reports
/// it after five minutes, for which the test does not wait.
#[tokio::test]
async fn without_a_gang_scheduler_two_jobs_block_each_other() {
    let gangs = Gangs::shared(Scheduler::Coscheduling).await;
    let _alone = gangs.alone().await;
    let _scheduler = built::kube_scheduler(&gangs.plane);
    let stage = Stage::without_gangs(gangs, (MX, Operators::Stay), (3, 2)).await;
    stage.create(&stage.gang("a")).await;
    stage.create(&stage.gang("b")).await;
    let bound = |pods: &[Pod]| pods.iter().filter(|pod| stage::is_bound(pod)).count();
    let pods = wait_for_all(stage.pods(), "", |pods| bound(pods) == 6).await;
    for job in ["a", "b"] {
        let of_job = pods.iter().filter(|pod| pod.name_any().starts_with(job));
        assert!(
            of_job.filter(|pod| stage::is_bound(pod)).count() >= 2,
            "{job}: {pods:#?}"
        );
    }
    let mut parted = BTreeSet::new();
    for pod in pods.iter().filter(|pod| !stage::is_bound(pod)) {
        stage.has_had_no_node_for(&pod.name_any(), 300).await;
        parted.insert(pod.labels()["training.kubeflow.org/job-name"].clone());
    }
    assert!(!parted.is_empty());
    for job in parted {
        let why = stage.event(&job, "PartlyScheduled").await;
        assert!(why.contains("of 4 pods have had no node for 5 minutes"), "{why}");
    }
    stage.end();
}
