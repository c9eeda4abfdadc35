//! The output of watched jobs, through a real API server from a node that runs the log code of a kubelet.

use std::fs;

use kube::ResourceExt;
use serde_json::json;
use training_job::api::ConditionType;
use training_job_mxnet::MXJob;
use training_job_testbed::cluster::ControlPlane;
use training_operator_testing::program::run;

use crate::rig::jobs::{is, job};
use crate::rig::stage::{Stage, namespace_with_account};

fn progress(job: &MXJob) -> Option<&str> {
    Some(job.status.as_ref()?.job.progress.as_ref()?.summary.as_str())
}

#[tokio::test]
async fn a_hanging_job_is_found_once_its_output_may_be_read() {
    let cluster = ControlPlane::shared().await;
    cluster.install_crds().await;
    let namespace = namespace_with_account(cluster, "output").await;
    let kubeconfig = cluster
        .kubeconfig_once_allowed(&namespace, "operator", "create", "pods")
        .await;
    let logs = cluster.directory().join("logs-of-node");
    let log = logs.join(&namespace).join("hangs-worker-0.log");
    fs::create_dir_all(log.parent().unwrap()).unwrap();
    let _node = cluster.answering_node("answers-logs", "LOGS", &logs).await;
    let stage = Stage::within(cluster, &namespace, &kubeconfig)
        .await
        .without_nodes();
    let operator = stage.operator();
    let mut watched = job("hangs", 1);
    watched["spec"]["runPolicy"]["progress"] = json!({"stalledAfterSeconds": 15});
    stage.create(watched).await;
    let pods = stage.until_pods("hangs", 1).await;
    stage.kubelet.bind(&pods[0].name_any(), "answers-logs").await;
    stage.kubelet.runs(&pods[0].name_any()).await;

    // The command is run as it is printed.
    let denied = stage.until_event("hangs", "LogsDenied").await;
    let (_, command) = denied.split_once("run: training-operator ").unwrap();
    let (print, apply) = command.split_once(" | kubectl ").unwrap();
    let printed = run(&print.split(' ').collect::<Vec<_>>());
    assert_eq!(printed.code, Some(0), "{printed:?}");
    let apply: Vec<&str> = apply.split(' ').collect();
    cluster
        .kubectl_with_input(&apply, &printed.stdout)
        .await
        .success();

    let unavailable = stage.until_event("hangs", "LogsUnavailable").await;
    assert!(unavailable.contains("is tried again"), "{unavailable}");
    let line =
        |second: u32, step: u32| format!("2026-01-01T00:00:{second:02}.5Z stdout F step {step}/9 loss=2\n");
    fs::write(&log, line(1, 1)).unwrap();
    stage.until_job("hangs", |job| progress(job) == Some("1/9")).await;
    let stalled = stage.until("hangs", ConditionType::Stalled).await;
    assert!(is(&stalled, ConditionType::Running));
    let told = stage.until_event("hangs", "MXJobStalled").await;
    assert!(
        told.ends_with("its last line, of 2026-01-01T00:00:01Z: step 1/9 loss=2."),
        "{told}"
    );

    // The clock of the node goes back.
    fs::write(&log, line(1, 1) + &line(0, 2)).unwrap();
    stage
        .until_job("hangs", |job| {
            !is(job, ConditionType::Stalled) && progress(job) == Some("2/9")
        })
        .await;
    stage.until_event("hangs", "MXJobAdvancing").await;
    let calls = stage.proxy.calls();
    let mut reads = calls.iter().filter(|call| call.subresource == "log");
    assert!(reads.all(|read| read.name == "hangs-worker-0" && read.query.contains("limitBytes=")));
    operator.expect_well();
}
