//! `/healthz`, `/readyz` and `/metrics`.

use serde_json::json;
use training_job::api::ConditionType;
use training_job_mxnet::MXJob;
use training_job_testbed::cluster::{Fault, On};

use super::candidates::control_plane;
use crate::rig::jobs::job;
use crate::rig::stage::Stage;

#[tokio::test]
async fn the_operator_is_ready_when_all_lists_are_complete() {
    let stage = Stage::of(control_plane().await, "ready").await;
    let held = stage.proxy.fault(On::call("list", "services"), Fault::Held);
    let operator = stage.operator();
    held.happened(1).await;
    assert_eq!(operator.page("health", "/healthz").await, (200, "ok".to_owned()));
    let (code, why) = operator.page("health", "/readyz").await;
    assert_eq!((code, &*why), (503, "the first lists are not complete"));
    let details = "role: leader\nmissing CRDs: none\nreadyz: the first lists are not complete\n";
    assert_eq!(
        operator.page("health", "/readyz?verbose").await,
        (503, details.to_owned())
    );
    stage.create(job("a", 1)).await;
    stage.proxy.watched("mxjobs", 1).await;
    assert_eq!(
        stage.proxy.count(&On::writes()),
        0,
        "nothing is done on half of the truth"
    );
    held.lift();
    operator.ready().await;
    assert_eq!(operator.page("health", "/readyz").await, (200, "ok".to_owned()));
    stage.until_all_run("a", 1).await;
    let paths = "/healthz\n/readyz\n/readyz?verbose\n";
    assert_eq!(operator.page("health", "/").await, (200, paths.to_owned()));
    assert_eq!(
        operator.page("metrics", "/").await,
        (200, "/metrics\n".to_owned())
    );
    assert_eq!(operator.page("health", "/metrics").await.0, 404);
    assert_eq!(operator.page("metrics", "/readyz").await.0, 404);
    operator.expect_well();
}

#[tokio::test]
async fn lives_are_counted_under_the_go_operators_names() {
    let stage = Stage::of(control_plane().await, "counted").await;
    let operator = stage.operator();
    // One job succeeds and is deleted after its time to live, one fails for good, and one restarts.
    let mut short = job("short", 1);
    short["spec"]["runPolicy"]["ttlSecondsAfterFinished"] = json!(0);
    for made in [short, job("fails", 1), job("restarts", 1)] {
        stage.create(made).await;
    }
    for name in ["short", "fails", "restarts"] {
        stage.until_all_run(name, 1).await;
    }
    stage.kubelet.succeeds("short-worker-0").await;
    stage
        .cluster
        .wait::<MXJob>(&stage.namespace, "short", |job| job.is_none())
        .await;
    stage.kubelet.exits("fails-worker-0", "mxnet", 1).await;
    stage.until("fails", ConditionType::Failed).await;
    stage.kubelet.exits("restarts-worker-0", "mxnet", 137).await;
    let again = |job: &MXJob| {
        let status = job.status.as_ref();
        status.is_some_and(|s| s.job.restart_count == 1 && s.job.is(ConditionType::Running))
    };
    stage.until_job("restarts", again).await;
    stage.succeed("restarts", 1).await;

    let labels = format!("{{job_namespace=\"{}\",framework=\"mxnet\"}}", stage.namespace);
    for (what, count) in [
        ("created", 3.0),
        ("successful", 2.0),
        ("failed", 1.0),
        ("restarted", 1.0),
        ("deleted", 1.0),
    ] {
        let name = format!("training_operator_jobs_{what}_total{labels}");
        operator.wait_for_metric(&name, count).await;
        assert_eq!(operator.metric(&name).await, Some(count), "{name}");
    }
    let (code, page) = operator.page("metrics", "/metrics").await;
    assert_eq!(code, 200);
    for (name, labels, least) in [
        ("queue_seconds", "framework=\"mxnet\"", 3.0),
        ("reconcile_seconds", "framework=\"mxnet\",result=\"success\"", 3.0),
        ("job_startup_seconds", "framework=\"mxnet\"", 3.0),
        (
            "job_duration_seconds",
            "framework=\"mxnet\",result=\"succeeded\"",
            2.0,
        ),
        (
            "job_duration_seconds",
            "framework=\"mxnet\",result=\"failed\"",
            1.0,
        ),
    ] {
        let count = format!("training_operator_{name}_count{{{labels}}}");
        assert!(
            operator.metric(&count).await.is_some_and(|n| n >= least),
            "{count}\n{page}"
        );
        let buckets = format!("training_operator_{name}_bucket{{le=\"+Inf\",{labels}}}");
        assert!(page.contains(&buckets), "{buckets}\n{page}");
    }
    for resource in ["mxjobs.kubeflow.org", "pods", "services"] {
        for (name, least) in [
            ("training_operator_lists_total", 1.0),
            ("training_operator_watch_last_event_timestamp_seconds", 1.7e9),
        ] {
            let name = format!("{name}{{resource=\"{resource}\"}}");
            assert!(
                operator.metric(&name).await.is_some_and(|n| n >= least),
                "{name}\n{page}"
            );
        }
    }
    let current = |state: &str| {
        let labels = labels.trim_matches(['{', '}']);
        format!("training_operator_jobs{{{labels},state=\"{state}\"}}")
    };
    for (name, count) in [
        (current("Succeeded"), 1.0),
        (current("Failed"), 1.0),
        (current("Running"), 0.0),
        (
            "training_operator_oldest_job_without_pods_seconds".to_owned(),
            0.0,
        ),
    ] {
        // The watch may report the deletion of a job later than the call.
        let is = |value: f64| (value - count).abs() < f64::EPSILON;
        operator.wait_until_metric(&name, is).await;
    }
    let tensorflow = labels.replace("mxnet", "tensorflow");
    for zero in [
        &*format!("training_operator_jobs_failed_total{tensorflow}"),
        "training_operator_reconcile_errors_total{framework=\"tensorflow\",reason=\"Denied\"}",
        "training_operator_events_dropped_total{cause=\"Queue\"}",
        "training_operator_lease_changes_total{change=\"acquired\"}",
        "training_operator_crd_missing{resource=\"tfjobs.kubeflow.org\"}",
        "training_operator_watch_failures_total{resource=\"pods\"}",
    ] {
        assert_eq!(operator.metric(zero).await, Some(0.0), "{zero}\n{page}");
    }
    assert!(!page.contains("crd_missing{resource=\"pods\"}"), "{page}");
    for (name, least) in [
        (
            "training_operator_api_requests_total{verb=\"create\",resource=\"pods\",code=\"201\"}",
            4.0,
        ),
        ("training_operator_api_request_seconds_count{verb=\"watch\"}", 3.0),
        ("process_open_fds", 5.0),
        ("process_resident_memory_bytes", 1e6),
        ("process_start_time_seconds", 1.7e9),
    ] {
        assert!(
            operator.metric(name).await.is_some_and(|n| n >= least),
            "{name}\n{page}"
        );
    }
    assert!(
        page.contains("\n# TYPE training_operator_jobs_failed_total counter\n"),
        "{page}"
    );
    assert!(!page.contains("# EOF"), "{page}");
    assert!(page.contains("\ntraining_operator_leader 1\n"), "{page}");
    assert!(
        page.contains("\ntraining_operator_build_info{version=\""),
        "{page}"
    );
    operator.expect_well();
}
