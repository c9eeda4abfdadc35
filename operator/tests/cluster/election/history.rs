//! The directory of the history: two operators write to it one after the other, and it may be on a full disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use serde_json::Value;
use training_job::api::ConditionType;
use training_job_testbed::cluster::{Program, Signal};
use training_operator_testing::operator::Operator;

use super::candidates::{Election, control_plane};
use crate::rig::jobs::job;
use crate::rig::stage::Stage;

/// Returns the finished jobs that the program lists, by name. All files must be stories.
fn listed(directory: &Path) -> BTreeMap<String, Value> {
    let jobs = print(directory, &["list"]);
    assert_eq!(jobs["problems"], serde_json::json!([]), "{jobs}");
    let jobs = jobs["jobs"].as_array().unwrap().iter();
    jobs.map(|job| (job["name"].as_str().unwrap().to_owned(), job.clone()))
        .collect()
}

/// Runs `history`, which must succeed, and returns its JSON.
fn print(directory: &Path, arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_training-operator"))
        .arg("history")
        .args(arguments)
        .env("TRAINING_OPERATOR_HISTORY", directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the contents and times of all files by name.
fn files(directory: &Path) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        let changed = entry.metadata().unwrap().modified().unwrap();
        (name, (fs::read(entry.path()).unwrap(), changed))
    };
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| read(entry.unwrap())).collect()
}

#[tokio::test]
async fn two_operators_write_each_story_once_and_it_names_the_rights_that_they_lack() {
    let directory = control_plane().await.directory().join("history-of-two");
    let flag = format!("--history={}", directory.display());
    let Election { stage, leader, other } = Election::start_with("history", &[&flag]).await;
    stage.create(job("lost", 2)).await;
    stage.until_all_run("lost", 2).await;
    stage.kubelet.exits("lost-worker-0", "mxnet", 1).await;
    stage.until("lost", ConditionType::Failed).await;
    leader
        .operator
        .wait_for_metric("training_operator_history_jobs", 1.0)
        .await;
    let before = files(&directory);
    assert_eq!(before.len(), 1);
    // The operators have the roles of the manifests.
    let story = print(&directory, &["show", "lost", "--namespace", &stage.namespace]);
    let notes = story["notes"].to_string();
    for right in ["`list events`", "`get pods/log`"] {
        assert!(notes.contains(right), "{notes}");
    }

    leader.operator.0.signal(Signal::KILL);
    other.takes_over(&stage).await;
    stage.create(job("good", 1)).await;
    stage.until_all_run("good", 1).await;
    stage.succeed("good", 1).await;
    other
        .operator
        .wait_for_metric("training_operator_history_jobs", 2.0)
        .await;
    let mut after = files(&directory);
    after.retain(|name, _| before.contains_key(name));
    assert_eq!(after, before, "the story was written again");
    assert_eq!(listed(&directory).len(), 2);
    other.operator.expect_well();
}

/// Starts an operator that can write only the first bytes of a file, as on a full disk.
const FULL: &str = "trap '' XFSZ; ulimit -S -f 1; exec \"$0\" \"$@\"";

#[tokio::test]
async fn a_full_disk_loses_no_story_for_good_and_stops_no_job() {
    let stage = Stage::new("history-full").await;
    let directory = stage.cluster.directory().join("history-full");
    let history = format!("--history={}", directory.display());
    let namespace = format!("--namespace={}", stage.namespace);
    let flags = [
        "run",
        "--zap-encoder=json",
        "--metrics-bind-address=127.0.0.1:0",
        "--health-probe-bind-address=127.0.0.1:0",
        "--enable-scheme=MXJob",
        &namespace,
        &history,
    ];
    let program = Program::new("/bin/sh")
        .args(["-c", FULL, env!("CARGO_BIN_EXE_training-operator")])
        .args(flags)
        .env("KUBECONFIG", stage.proxy.kubeconfig());
    let full = Operator(stage.cluster.spawn(program));
    for (n, name) in [(1.0, "first"), (2.0, "second")] {
        stage.create(job(name, 1)).await;
        stage.until_all_run(name, 1).await;
        stage.succeed(name, 1).await;
        let lost = r#"training_operator_stories_lost_total{cause="Write"}"#;
        full.wait_for_metric(lost, n).await;
        assert_eq!(files(&directory), BTreeMap::new(), "a part of a story is left");
    }
    full.expect_well();
    full.0.signal(Signal::INT);
    full.0.exit_code().await;

    let operator = stage.operator_with(&[&history]);
    operator
        .wait_for_metric("training_operator_history_jobs", 2.0)
        .await;
    let jobs = listed(&directory);
    assert_eq!(jobs.keys().collect::<Vec<_>>(), ["first", "second"]);
}
