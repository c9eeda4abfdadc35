//! `kubectl training` on a real API server, with the operator.

mod changes;
mod completion;
mod crowd;
mod events;
mod history;
mod interrupted;
mod logs;
mod rights;
mod ui;
mod views;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};
use training_job_testbed::cluster::{ControlPlane, Output};

use super::stage::Stage;

/// Returns a directory with the links that make the program a plugin of kubectl.
pub(super) fn links(cluster: &ControlPlane) -> &'static Path {
    static LINKS: OnceLock<PathBuf> = OnceLock::new();
    LINKS.get_or_init(|| {
        let directory = cluster.directory().join("plugins");
        std::fs::create_dir_all(&directory).unwrap();
        for name in ["kubectl-training", "kubectl_complete-training"] {
            symlink(env!("CARGO_BIN_EXE_training-operator"), directory.join(name)).unwrap();
        }
        directory
    })
}

/// Runs the plugin with the credentials of a kubeconfig.
pub(super) async fn run_as(cluster: &ControlPlane, kubeconfig: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(links(cluster).join("kubectl-training"));
    command.args(arguments).env("KUBECONFIG", kubeconfig);
    let output = tokio::task::spawn_blocking(move || command.output())
        .await
        .unwrap()
        .unwrap();
    Output {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Returns a kubeconfig that does not exist, and one whose server does not.
fn without_cluster(cluster: &ControlPlane) -> [PathBuf; 2] {
    let [missing, unreachable] = ["missing", "unreachable"].map(|name| cluster.directory().join(name));
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": ""}}],
    });
    std::fs::write(&unreachable, text.to_string()).unwrap();
    [missing, unreachable]
}

/// Runs the plugin as the administrator, in the namespace of the stage.
async fn run(stage: &Stage, arguments: &[&str]) -> Output {
    let kubeconfig = stage.cluster.kubeconfig_in(&stage.namespace);
    run_as(stage.cluster, &kubeconfig, arguments).await
}

/// Runs the plugin, which must succeed, and returns its JSON.
async fn json(stage: &Stage, arguments: &[&str]) -> Value {
    let text = run(stage, &[arguments, &["-o", "json"]].concat()).await.success();
    serde_json::from_str(&text).unwrap()
}

/// Waits until the operator has given a job this condition.
async fn until(stage: &Stage, job: &str, condition: &str) {
    let condition = format!("--for=condition={condition}");
    stage
        .run(&["wait", "mxjob", job, &condition, "--timeout=60s"])
        .await;
}
