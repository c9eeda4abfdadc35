//! An operator without work makes no calls.

use std::time::Duration;

use futures::future::join_all;
use training_job_controller::Options;
use training_job_testbed::cluster::Signal;

use super::bill::{calls, stage};
use crate::rig::jobs::job;

const RESOURCES: [&str; 4] = ["mxjobs", "pods", "services", "configmaps"];

#[tokio::test]
async fn when_nothing_changes_watches_are_renewed_and_nothing_else() {
    let stage = stage("quiet").await;
    let mut options = Options::default();
    options.watch_timeout = Duration::from_secs(4);
    let operator = stage.operator_in_process(options).await;
    stage.create(job("runs", 4)).await;
    stage.create(job("ends", 4)).await;
    stage.until_all_run("runs", 4).await;
    stage.until_all_run("ends", 4).await;
    stage.succeed("ends", 4).await;
    stage.until_event("ends", "MXJobSucceeded").await;
    // The last reconcile follows the last write.
    for resource in RESOURCES {
        stage
            .proxy
            .watched(resource, stage.proxy.watches_begun(resource) + 1)
            .await;
    }
    let before = calls(&stage).len();
    for resource in RESOURCES {
        stage
            .proxy
            .watched(resource, stage.proxy.watches_begun(resource) + 2)
            .await;
    }
    let all = calls(&stage);
    let since: Vec<_> = all[before..]
        .iter()
        .map(|call| (&*call.verb, call.summary()))
        .collect();
    assert!(
        since.len() >= 6 && since.iter().all(|(verb, _)| *verb == "watch"),
        "{since:#?}"
    );
    operator.expect_well();
}

#[tokio::test]
async fn a_new_operator_writes_nothing_to_a_hundred_running_jobs() {
    let stage = stage("restart").await;
    let operator = stage.operator_with(&["--enable-scheme=MXJob"]);
    let names: Vec<_> = (0..100).map(|n| format!("job-{n}")).collect();
    for few in names.chunks(10) {
        join_all(few.iter().map(|name| stage.create(job(name, 1)))).await;
    }
    join_all(names.chunks(25).map(async |few| {
        for name in few {
            stage.until_all_run(name, 1).await;
        }
    }))
    .await;
    operator.0.signal(Signal::KILL);
    operator.0.exit_code().await;
    let before = calls(&stage).len();
    let begun = RESOURCES.map(|resource| stage.proxy.watches_begun(resource));
    let operator = stage.operator_with(&["--enable-scheme=MXJob"]);
    operator.ready().await;
    // An operator that has read all lists is ready, and its watches may not have begun.
    for (resource, begun) in RESOURCES.iter().zip(begun) {
        stage.proxy.watched(resource, begun + 1).await;
    }
    let looked = "training_operator_reconcile_seconds_count{framework=\"mxnet\",result=\"success\"}";
    operator.wait_for_metric(looked, 100.0).await;
    let all = calls(&stage);
    let mut since: Vec<_> = all[before..]
        .iter()
        .map(|call| format!("{} {}", call.verb, call.resource))
        .collect();
    since.sort();
    since.dedup();
    let reads = RESOURCES
        .iter()
        .flat_map(|resource| ["list", "watch"].map(|verb| format!("{verb} {resource}")));
    let mut reads: Vec<_> = reads.collect();
    reads.sort();
    assert_eq!(since, reads);
    // The last reconcile may have written something.
    stage.succeed("job-99", 1).await;
    let writes = calls(&stage)[before..]
        .iter()
        .filter(|c| !matches!(&*c.verb, "list" | "watch"))
        .cloned()
        .collect::<Vec<_>>();
    assert!(
        writes
            .iter()
            .all(|c| c.name == "job-99" || c.resource == "events"),
        "{writes:?}"
    );
    operator.expect_well();
}
