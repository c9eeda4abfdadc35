//! Lost requests and responses.

use std::time::Duration;

use training_job::api::ConditionType;
use training_job_controller::Options;
use training_job_testbed::cluster::{Fault, On, Reply};

use crate::rig::jobs::{cleaned, deciding, job};
use crate::rig::stage::Stage;

const REPLICAS: u32 = 2;

/// Creates one job for each write of a job's whole life. That write of the job is lost in this way. All jobs must end
/// as without a fault.
async fn each_write(stage: &Stage<'_>, fault: impl Fn() -> Fault) {
    let operator = stage.operator();
    let life = async |name: &str| {
        stage.create(cleaned(job(name, REPLICAS), "All")).await;
        stage.until_all_run(name, REPLICAS).await;
        stage.kubelet.succeeds(&deciding(name, REPLICAS)).await;
        stage.until(name, ConditionType::Succeeded).await;
        stage.until_pods(name, 0).await;
        // The services are deleted after the pods.
        let ends = On::call("delete", "services").prefixed(name);
        stage.proxy.wait_for(&ends, REPLICAS as usize).await;
        stage
            .proxy
            .wait_for(&On::call("create", "events").prefixed(name), 1)
            .await;
    };
    life("probe").await;
    let writes = |call: &training_job_testbed::cluster::RecordedCall| {
        call.writes() && call.name.starts_with("probe") && call.resource != "events"
    };
    // Services, pods, deletions of both, and two or three statuses.
    let count = stage.proxy.calls().iter().filter(|call| writes(call)).count();
    assert!((10..=11).contains(&count), "{count}");
    let mut planned = Vec::new();
    for number in 0..10 {
        let on = On::writes()
            .except("events")
            .prefixed(&format!("life-{number}x"))
            .skip(number)
            .times(1);
        planned.push(stage.proxy.fault(on, fault()));
    }
    let names: Vec<_> = (0..10).map(|number| format!("life-{number}x")).collect();
    futures::future::join_all(names.iter().map(|name| life(name))).await;
    for plan in &planned {
        plan.happened(1).await;
    }
    stage.expect_no_harm();
    operator.expect_well();
}

#[tokio::test]
async fn an_answer_that_is_lost_after_the_write_changes_nothing() {
    each_write(&Stage::new("lost-response").await, || Fault::AnswerLost).await;
}

#[tokio::test]
async fn an_answer_that_denies_the_write_changes_nothing() {
    let denied = || Fault::Misreported(Reply::status(504, "Timeout"));
    each_write(&Stage::new("denied-write").await, denied).await;
}

#[tokio::test]
async fn a_write_that_never_arrives_is_made_again() {
    each_write(&Stage::new("lost-request").await, || Fault::Lost).await;
}

#[tokio::test]
async fn calls_without_a_response_time_out() {
    let stage = Stage::new("no-response").await;
    let mut options = Options::default();
    options.call_timeout = Duration::from_secs(1);
    // A call that hangs must not occupy the only worker.
    options.concurrency = 2;
    let holes = [
        stage
            .proxy
            .fault(On::call("list", "mxjobs").times(1), Fault::BlackHole),
        stage
            .proxy
            .fault(On::call("watch", "services").times(1), Fault::BlackHole),
        stage.proxy.fault(
            On::call("create", "services").prefixed("a").times(1),
            Fault::BlackHole,
        ),
        stage.proxy.fault(
            On::call("create", "pods").prefixed("a").times(1),
            Fault::Unanswered,
        ),
        stage.proxy.fault(
            On::call("patch", "mxjobs/status").prefixed("a").times(1),
            Fault::BlackHole,
        ),
        stage.proxy.fault(
            On::call("delete", "pods").prefixed("a").times(1),
            Fault::Unanswered,
        ),
    ];
    let operator = stage.operator_in_process(options).await;
    stage.create(cleaned(job("a", 2), "All")).await;
    stage.good_job().await;
    stage.until_all_run("a", 2).await;
    stage.succeed("a", 2).await;
    stage.until_pods("a", 0).await;
    for hole in &holes {
        hole.happened(1).await;
    }
    stage.expect_no_harm();
    operator.expect_well();
}
