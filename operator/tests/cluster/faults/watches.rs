//! Watches that end, are too old, or fall silent.

use std::time::Duration;

use futures::future::join_all;
use training_job::api::ConditionType;
use training_job_controller::Options;
use training_job_testbed::cluster::{Fault, On, Reply};

use crate::rig::jobs::{deciding, is, job};
use crate::rig::stage::Stage;

const RESOURCES: [&str; 3] = ["mxjobs", "pods", "services"];

#[tokio::test]
async fn a_watch_that_ends_continues_from_its_version() {
    let stage = Stage::new("watch-ends").await;
    let operator = stage.operator_with(&["--enable-scheme=MXJob"]);
    for resource in RESOURCES {
        stage.proxy.watched(resource, 1).await;
    }
    for (n, in_order) in [(1, true), (2, false), (3, true)] {
        let name = format!("j{n}");
        stage.create(job(&name, 2)).await;
        stage.until_all_run(&name, 2).await;
        for resource in RESOURCES {
            assert_eq!(stage.proxy.cut_watches(resource, in_order), 1, "{resource}");
        }
        // While no watch is open.
        stage.kubelet.succeeds(&deciding(&name, 2)).await;
        for resource in RESOURCES {
            stage.proxy.watched(resource, n + 1).await;
        }
        stage.until(&name, ConditionType::Succeeded).await;
    }
    // The server ends the watch after each event.
    let short = stage
        .proxy
        .fault(On::call("watch", "pods").times(3), Fault::EndsAfter(1));
    assert_eq!(stage.proxy.cut_watches("pods", true), 1);
    stage.create(job("short", 4)).await;
    stage.until_all_run("short", 4).await;
    stage.succeed("short", 4).await;
    short.happened(3).await;
    for resource in RESOURCES {
        assert_eq!(
            stage.proxy.count(&On::call("list", resource)),
            1,
            "{resource} listed again"
        );
    }
    stage.expect_no_harm();
    operator.expect_well();
}

#[tokio::test]
async fn a_watch_lists_once_after_each_410() {
    let stage = Stage::new("watch-expires").await;
    let operator = stage.operator_with(&["--enable-scheme=MXJob"]);
    for resource in RESOURCES {
        stage.proxy.watched(resource, 1).await;
    }
    stage.create(job("a", 2)).await;
    let before = stage.until_all_run("a", 2).await;
    let mut planned = Vec::new();
    for resource in RESOURCES {
        let watch = || On::call("watch", resource).times(1);
        planned.push(stage.proxy.fault(watch(), Fault::Refused(Reply::expired())));
        planned.push(
            stage
                .proxy
                .fault(watch(), Fault::Refused(Reply::status(410, "Expired"))),
        );
        planned.push(stage.proxy.fault(watch(), Fault::Refused(Reply::expired())));
    }
    for resource in RESOURCES {
        assert_eq!(stage.proxy.cut_watches(resource, true), 1, "{resource}");
    }
    for plan in &planned {
        plan.happened(1).await;
    }
    for resource in RESOURCES {
        stage.proxy.watched(resource, 2).await;
    }
    stage.create(job("b", 2)).await;
    stage.until_all_run("b", 2).await;
    stage.succeed("a", 2).await;
    assert_eq!(stage.pods_of("a").await, before);
    for resource in RESOURCES {
        assert_eq!(stage.proxy.count(&On::call("list", resource)), 4, "{resource}");
    }
    stage.expect_no_harm();
    operator.expect_well();
}

/// A server under load ends the watches of slow readers. This is not an error, and must cause neither a list nor a
/// delay.
#[tokio::test]
async fn watches_end_after_each_event_while_many_jobs_come_and_end() {
    let stage = Stage::new("watch-events").await;
    let ends = RESOURCES.map(|resource| {
        let watches = On::call("watch", resource);
        (resource, stage.proxy.fault(watches, Fault::EndsAfter(1)))
    });
    let operator = stage.operator_in_process(Options::default()).await;
    for resource in RESOURCES {
        stage.proxy.watched(resource, 1).await;
    }
    let names: Vec<String> = (0..20).map(|number| format!("j{number}")).collect();
    join_all(names.iter().map(|name| stage.create(job(name, 5)))).await;
    join_all(names.iter().map(|name| stage.until_all_run(name, 5))).await;
    join_all(names.iter().map(|name| stage.succeed(name, 5))).await;
    for (resource, ends) in ends {
        // At least the creation and the end of each job, and the creation of each pod and service.
        let events = if resource == "mxjobs" { 40 } else { 100 };
        assert!(ends.count() >= events, "{ends:?}");
        assert_eq!(stage.proxy.count(&On::call("list", resource)), 1, "{resource}");
        let label = match resource {
            "mxjobs" => "mxjobs.kubeflow.org",
            core => core,
        };
        let failures = format!("training_operator_watch_failures_total{{resource=\"{label}\"}}");
        assert_eq!(operator.metric(&failures), Some(0.0), "{resource}");
    }
    stage.expect_no_harm();
    operator.expect_well();
}

#[tokio::test]
async fn a_watch_that_died_is_noticed_shown_and_begun_anew() {
    let stage = Stage::new("watch-dies").await;
    let mut options = Options::default();
    options.watch_timeout = Duration::from_secs(8);
    let operator = stage.operator_in_process(options).await;
    stage.create(job("a", 2)).await;
    stage.until_all_run("a", 2).await;
    let metric = |name: &str, resource: &str| {
        let name = format!("training_operator_watch_{name}{{resource=\"{resource}\"}}");
        operator.metric(&name)
    };
    let failures = metric("failures_total", "pods");
    let begun = stage.proxy.watches_begun("pods");
    let frozen = stage.proxy.freeze_watches("pods");
    assert_eq!(frozen.count(), 1);
    let last_event = metric("last_event_timestamp_seconds", "pods").unwrap();
    stage.kubelet.succeeds(&deciding("a", 2)).await;
    // The other watches work: a new job is observed immediately, and its pods are created.
    stage.create(job("b", 1)).await;
    stage
        .proxy
        .wait_for(&On::call("create", "pods").prefixed("b"), 1)
        .await;
    if frozen.still_open() == 1 {
        assert_eq!(
            metric("last_event_timestamp_seconds", "pods"),
            Some(last_event),
            "that it is silent is shown"
        );
        assert!(metric("last_event_timestamp_seconds", "mxjobs.kubeflow.org").unwrap() > last_event);
        assert!(!is(
            &stage.jobs().get("a").await.unwrap(),
            ConditionType::Succeeded
        ));
    }
    stage.until("a", ConditionType::Succeeded).await;
    stage.until_all_run("b", 1).await;
    assert_eq!(frozen.still_open(), 0, "it was never thawed");
    assert!(stage.proxy.watches_begun("pods") > begun);
    assert!(metric("failures_total", "pods") > failures, "{failures:?}");
    assert!(metric("last_event_timestamp_seconds", "pods").unwrap() > last_event);
    assert_eq!(stage.proxy.count(&On::call("list", "pods")), 1);
    stage.expect_no_harm();
    operator.expect_well();
}
