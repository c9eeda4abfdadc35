//! `logs`: from a kubelet that serves what the test writes.

use std::fs;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use training_job_testbed::cluster::{Background, Program};

use super::{links, run, until};
use crate::clients::stage::Stage;

/// A node with logs.
struct LogNode<'a> {
    stage: &'a Stage,
    directory: PathBuf,
    name: String,
    _server: Background,
}

impl<'a> LogNode<'a> {
    async fn new(stage: &'a Stage) -> Self {
        let directory = stage
            .cluster
            .directory()
            .join(format!("{}-logs", stage.namespace));
        fs::create_dir_all(&directory).unwrap();
        let certificates = stage.cluster.directory().join("certificates");
        let server = stage.cluster.spawn(
            Program::new("python3")
                .args(["-B", "operator/tests/cluster/clients/plugin/logs.py"])
                .args([
                    certificates.join("apiserver.crt"),
                    certificates.join("apiserver.key"),
                ])
                .args([&directory]),
        );
        let line = server.wait_for_line("port: ").await;
        let port: i32 = line.trim().rsplit(' ').next().unwrap().parse().unwrap();
        let name = format!("{}-node", stage.namespace);
        let nodes: Api<Node> = Api::all(stage.cluster.client());
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        nodes
            .create(&PostParams::default(), &serde_json::from_value(node).unwrap())
            .await
            .unwrap();
        let status = json!({"status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }});
        nodes
            .patch_status(&name, &PatchParams::default(), &Patch::Merge(status))
            .await
            .unwrap();
        Self {
            stage,
            directory,
            name,
            _server: server,
        }
    }

    /// Appends lines, each with its second, to the log of a pod.
    fn write(&self, pod: &str, file: &str, lines: &[(u8, &str)]) {
        use std::io::Write;
        let directory = self.directory.join(pod);
        fs::create_dir_all(&directory).unwrap();
        let mut log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(directory.join(file))
            .unwrap();
        for (second, text) in lines {
            writeln!(log, "2026-01-01T00:00:{second:02}.5Z {text}").unwrap();
        }
    }

    async fn remove(self) {
        let nodes: Api<Node> = Api::all(self.stage.cluster.client());
        nodes.delete(&self.name, &DeleteParams::default()).await.unwrap();
    }
}

const JOB: &str = "
apiVersion: kubeflow.org/v1
kind: MXJob
metadata: {name: train}
spec:
  jobMode: MXTrain
  runPolicy: {cleanPodPolicy: None}
  mxReplicaSpecs:
    Scheduler:
      restartPolicy: ExitCode
      template: {spec: {containers: [{name: mxnet, image: i}]}}
    Worker:
      replicas: 2
      restartPolicy: ExitCode
      template: {spec: {containers: [{name: mxnet, image: i}]}}
";

const PODS: [&str; 3] = ["train-scheduler-0", "train-worker-0", "train-worker-1"];

#[tokio::test]
async fn the_logs_of_all_replicas_are_merged_and_followed_over_a_restart() {
    let stage = Stage::new("plugin-logs").await;
    let node = LogNode::new(&stage).await;
    stage.cluster.create(&stage.namespace, JOB).await;
    let waits = run(&stage, &["logs", "train"]).await;
    assert_eq!(waits.code, 2);
    assert!(
        waits
            .stderr
            .contains("has started; see: kubectl training status MXJob/train"),
        "{}",
        waits.stderr
    );
    stage.until_attempt("train", 3, "0").await;
    for pod in PODS {
        stage.kubelet.bind(pod, &node.name).await;
    }
    stage.all_run("train", 3, "0").await;
    until(&stage, "train", "Running").await;
    node.write(PODS[0], "mxnet", &[(1, "scheduler begins"), (4, "all are there")]);
    node.write(PODS[1], "mxnet", &[(2, "worker 0 begins"), (5, "step 1")]);
    node.write(PODS[2], "mxnet", &[(3, "worker 1 begins")]);
    let merged = run(&stage, &["logs", "train"]).await.success();
    assert_eq!(
        merged,
        "\
scheduler-0 | scheduler begins
worker-0    | worker 0 begins
worker-1    | worker 1 begins
scheduler-0 | all are there
worker-0    | step 1
"
    );
    let workers = run(
        &stage,
        &["logs", "train", "--role", "worker", "--tail", "1", "--timestamps"],
    )
    .await;
    assert_eq!(
        workers.success(),
        "worker-1 | 2026-01-01T00:00:03.5Z worker 1 begins\nworker-0 | 2026-01-01T00:00:05.5Z step 1\n"
    );
    let unknown = run(&stage, &["logs", "train", "--replica", "worker-2"]).await;
    assert_eq!(unknown.code, 2);
    assert!(
        unknown
            .stderr
            .contains("it has scheduler-0 to scheduler-0, worker-0 to worker-1"),
        "{}",
        unknown.stderr
    );
    let none = run(&stage, &["logs", "train", "--failed"]).await;
    assert!(
        none.code == 2 && none.stderr.contains("no pod of a failed replica"),
        "{none:?}"
    );

    let follower = stage.cluster.spawn(
        Program::new(links(stage.cluster).join("kubectl-training"))
            .args(["logs", "train", "--follow", "--tail", "1"])
            .env("KUBECONFIG", stage.cluster.kubeconfig_in(&stage.namespace)),
    );
    follower.wait_for_line("worker-0    | step 1").await;
    node.write(PODS[1], "mxnet", &[(6, "step 2")]);
    follower.wait_for_line("worker-0    | step 2").await;
    // All replicas restart, and their pods have the same names.
    for pod in PODS {
        node.write(pod, "mxnet.ended", &[]);
    }
    stage.kubelet.exits(PODS[2], "mxnet", 137).await;
    // The pods of a node end when its kubelet has ended them.
    let is_deleting = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
    // The one that has ended is deleted at once.
    stage
        .until_pods("train", |pods| pods.len() == 2 && pods.iter().all(is_deleting))
        .await;
    for pod in &PODS[..2] {
        stage.kubelet.finishes_deletion(pod).await;
    }
    let pods = stage.until_attempt("train", 3, "1").await;
    for pod in PODS {
        fs::remove_file(node.directory.join(pod).join("mxnet.ended")).unwrap();
        fs::remove_file(node.directory.join(pod).join("mxnet")).unwrap();
        node.write(pod, "mxnet", &[(10, "again")]);
        stage.kubelet.bind(pod, &node.name).await;
    }
    for pod in &pods {
        stage.kubelet.runs(pod).await;
    }
    follower.wait_for_lines("| again", 3).await;
    for pod in PODS {
        node.write(pod, "mxnet", &[(11, "done")]);
        node.write(pod, "mxnet.ended", &[]);
        stage.kubelet.succeeds(pod).await;
    }
    assert_eq!(follower.exit_code().await, 0);
    let text = follower.text();
    assert_eq!(text.matches("| done").count(), 3, "{text}");
    assert!(
        text.ends_with("note: MXJob/train has ended: Succeeded\n"),
        "{text}"
    );
    node.remove().await;
}

#[tokio::test]
async fn the_log_before_the_last_restart_is_printed() {
    let stage = Stage::new("plugin-previous").await;
    let node = LogNode::new(&stage).await;
    let job = JOB.replace("ExitCode", "OnFailure");
    stage.cluster.create(&stage.namespace, &job).await;
    stage.until_attempt("train", 3, "0").await;
    for pod in PODS {
        stage.kubelet.bind(pod, &node.name).await;
    }
    stage.all_run("train", 3, "0").await;
    let none = run(&stage, &["logs", "train", "--previous"]).await;
    assert_eq!(none.code, 2);
    assert!(
        none.stderr.contains("no container was restarted by its kubelet"),
        "{}",
        none.stderr
    );
    stage.kubelet.restarts(PODS[1], "mxnet", 1).await;
    node.write(PODS[1], "mxnet.previous", &[(1, "out of memory")]);
    node.write(PODS[1], "mxnet", &[(2, "second run")]);
    let previous = run(&stage, &["logs", "train", "--previous"]).await.success();
    assert_eq!(previous, "worker-0 | out of memory\n");
    let now = run(&stage, &["logs", "train", "--replica", "worker-0"])
        .await
        .success();
    assert_eq!(now, "worker-0 | second run\n");
    node.remove().await;
}
