//! `list` and `report` of jobs that were deleted, from the history of their operator.

use std::fs;

use serde_json::Value;
use training_job::api::ConditionType;

use super::{run_as, without_cluster};
use crate::rig::jobs::job;
use crate::rig::stage::Stage;

#[tokio::test]
async fn a_deleted_job_is_listed_and_reported() {
    let stage = Stage::new("plugin-history").await;
    let directory = stage.cluster.directory().join("plugin-history");
    let directory = directory.to_str().unwrap();
    let operator = stage.operator_with(&["--history", directory]);
    stage.create(job("train", 3)).await;
    stage.until_all_run("train", 3).await;
    stage.kubelet.exits("train-worker-1", "mxnet", 3).await;
    stage.until("train", ConditionType::Failed).await;
    operator
        .wait_for_metric("training_operator_history_jobs", 1.0)
        .await;
    stage.delete("train").await;
    stage.create(job("other", 1)).await;
    stage.until_all_run("other", 1).await;
    fs::write(format!("{directory}/{}.a.MXJob.b.json", stage.namespace), "{").unwrap();

    let kubeconfig = stage.cluster.kubeconfig_in(&stage.namespace);
    let run = async |arguments: &[&str]| run_as(stage.cluster, &kubeconfig, arguments).await;
    let list = ["list", "--finished", "--history", directory];
    let listed = run(&list).await;
    assert!(
        listed.stderr.contains(".a.MXJob.b.json: not a story"),
        "{}",
        listed.stderr
    );
    let text = listed.success();
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!(lines[0], "KIND NAME STATE READY RESTARTS AGE DURATION WHY");
    let row = "MXJob train Failed Scheduler 0/1, Worker 0/2 (1 failed) 0";
    assert!(lines[1].starts_with(row), "{text}");
    assert!(lines[1].ends_with("worker-1: exit 3"), "{text}");
    let json = run(&[&list[..], &["-o", "json"]].concat()).await.success();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["jobs"].as_array().unwrap().len(), 1, "{json}");
    assert_eq!(json["jobs"][0]["isDeleted"], true, "{json}");
    let labels = run(&["list", "-l", "a=b", "--history", directory]).await;
    assert_eq!(labels.code, 2, "stories have no labels");

    let lost = run(&["report", "train"]).await;
    assert_eq!(lost.code, 2);
    assert!(
        lost.stderr.contains("no job \"train\"") && lost.stderr.contains("add --history DIR"),
        "{}",
        lost.stderr
    );
    let page = run(&["report", "train", "--history", directory]).await.success();
    assert!(page.contains("<title>MXJob train: Failed</title>"), "{page}");
    assert!(page.contains("worker-1: exit 3"), "{page}");
    for kubeconfig in without_cluster(stage.cluster) {
        let arguments = [&list[..], &["-n", &stage.namespace, "-o", "json"]].concat();
        let unread = run_as(stage.cluster, &kubeconfig, &arguments).await;
        let note = "only the history is listed, because the cluster cannot be read: ";
        assert!(unread.stderr.contains(note), "{}", unread.stderr);
        let unread: Value = serde_json::from_str(&unread.success()).unwrap();
        assert_eq!(unread["jobs"][0]["name"], "train", "{unread}");
        assert_eq!(unread["jobs"][0]["isDeleted"], Value::Null, "it may still exist");
        let without = run_as(stage.cluster, &kubeconfig, &["list", "--finished"]).await;
        assert_eq!(without.code, 2, "{}", without.stdout);
    }
    for kind in ["mxjob", "tfjob"] {
        let named = format!("{kind}/train");
        let report = run(&["report", &named, "--history", directory, "-o", "json"]).await;
        match kind {
            "mxjob" => assert!(report.success().contains("\"name\": \"train\"")),
            _ => assert_eq!(report.code, 2, "{}", report.stdout),
        }
    }
}
