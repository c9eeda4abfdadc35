//! The history of an operator that runs in a pod, which clients read through the pod. Only a local cluster can run commands
//! in pods here.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use training_job_testbed::cluster::{Program, WAIT_TIMEOUT};

use super::local_cluster::Local;
use super::plugin::run_as;

const PROGRAM: &str = env!("CARGO_BIN_EXE_training-operator");

/// Returns a job that ends with exit code 3.
fn failing() -> String {
    json!({
        "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "train"},
        "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 1, "restartPolicy": "Never", "template": {"spec": {
            "containers": [{"name": "pytorch", "image": "none", "command": ["/bin/sh", "-c", "echo gone; exit 3"]}],
        }}}}},
    })
    .to_string()
}

/// Returns the Deployment and the pod of an operator for an empty namespace, which has the directory of the local cluster's
/// history: its own would be managed by two operators.
fn installed(kubeconfig: &Path, history: &Path) -> String {
    let spec = json!({
        "serviceAccountName": "training-operator",
        "containers": [{
            "name": "training-operator", "image": "training-operator", "command": [PROGRAM],
            "args": ["run", "--namespace=none", "--history", history, "--metrics-bind-address=0",
                "--health-probe-bind-address=0", "--kubeconfig", kubeconfig],
        }],
    });
    let labels = json!({"app": "operator"});
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "operator-0", "namespace": "ops"}, "spec": spec},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "operator", "namespace": "ops"},
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}},
    ]})
    .to_string()
}

/// Waits until the directory has a story, which sends no event.
async fn until_written(history: &Path) {
    let has_story = || {
        let mut entries = std::fs::read_dir(history).into_iter().flatten().flatten();
        entries.any(|entry| entry.path().extension().is_some_and(|ending| ending == "json"))
    };
    let written = async {
        while !has_story() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, written).await.unwrap();
}

/// Returns the response to a request of a browser that has entered.
fn get(address: &str, path: &str) -> String {
    let (host, token) = address.split_once("/?token=").unwrap();
    let host = host.strip_prefix("http://").unwrap();
    let port = host.rsplit(':').next().unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let cookie = format!("training-ui-{port}={token}");
    let head =
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[tokio::test]
async fn clients_read_the_history_in_the_pod_of_the_operator() {
    let data = std::env::temp_dir().join(format!("local-history-{}", std::process::id()));
    let local = Local::start_with("local-history", &["--data".as_ref(), data.as_ref()]).await;
    let history = data.join("history");
    local.run(&["create", "namespace", "ops"]).await;
    let operator = installed(&local.kubeconfig, &history);
    local
        .kubectl(&["create", "--namespace=ops", "-f", "-"], &operator)
        .await
        .success();
    let running = "--for=jsonpath={.status.phase}=Running";
    local
        .run(&[
            "wait",
            "--namespace=ops",
            "pod/operator-0",
            running,
            "--timeout=60s",
        ])
        .await;
    local.kubectl(&["create", "-f", "-"], &failing()).await.success();
    local
        .run(&[
            "wait",
            "pytorchjob/train",
            "--for=condition=Failed",
            "--timeout=60s",
        ])
        .await;
    let run = async |arguments: &[&str]| {
        let namespaced = [arguments, &["--namespace", &local.namespace]].concat();
        run_as(local.real, &local.kubeconfig, &namespaced).await
    };
    let list = ["list", "-o", "json", "--finished", "--history-of-operator", "ops"];
    // The story is written after the end of the job is stored.
    until_written(&history).await;
    local.run(&["delete", "pytorchjob/train"]).await;

    let listed: Value = serde_json::from_str(&run(&list).await.success()).unwrap();
    assert_eq!(listed["jobs"][0]["name"], "train", "{listed}");
    assert_eq!(listed["jobs"][0]["why"], "worker-0: exit 3", "{listed}");
    let page = run(&["report", "train", "--history-of-operator", "ops"])
        .await
        .success();
    assert!(page.contains("<title>PyTorchJob train: Failed</title>"), "{page}");
    assert!(page.contains("gone"), "{page}");
    let missing = run(&["report", "other", "--history-of-operator", "ops"]).await;
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("no job \"other\""), "{}", missing.stderr);
    let lost = run(&["report", "train"]).await;
    assert!(lost.stderr.contains("DIR/history of --data"), "{}", lost.stderr);

    let ui = local.real.spawn(
        Program::new(super::plugin::links(local.real).join("kubectl-training"))
            .args([
                "ui",
                "--history-of-operator",
                "ops",
                "--namespace",
                &local.namespace,
            ])
            .env("KUBECONFIG", &local.kubeconfig),
    );
    let address = ui.wait_for_line("http://127.0.0.1:").await;
    let address = address[address.find("http://").unwrap()..].trim().to_owned();
    let job = format!("/job/{}/PyTorchJob/train", local.namespace);
    let (list, story) = tokio::task::spawn_blocking(move || (get(&address, "/"), get(&address, &job)))
        .await
        .unwrap();
    assert!(list.contains("Failed</span> (deleted)"), "{list}");
    assert!(story.contains("Its story is from the history."), "{story}");

    let doctor = local.real.spawn(
        Program::new(PROGRAM)
            .args(["doctor"])
            .env("KUBECONFIG", &local.kubeconfig),
    );
    doctor.exit_code().await;
    let text = doctor.text();
    assert!(
        text.contains("history ops/operator: stories of 1 job, "),
        "{text}"
    );
    local.stop().await;
    std::fs::remove_dir_all(data).unwrap();
}
