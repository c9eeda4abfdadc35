//! Completion of words by kubectl itself.

use std::process::Command;

use super::links;
use crate::clients::stage::Stage;

/// Returns the words that kubectl completes, with its directive.
async fn completed(stage: &Stage, words: &[&str]) -> Vec<String> {
    let path = format!(
        "{}:{}",
        links(stage.cluster).display(),
        std::env::var("PATH").unwrap()
    );
    let mut command = Command::new(stage.cluster.kubectl_path());
    command
        .args([&["__complete", "training"], words].concat())
        .env("PATH", path)
        .env("KUBECONFIG", stage.cluster.kubeconfig_in(&stage.namespace));
    let output = tokio::task::spawn_blocking(move || command.output())
        .await
        .unwrap()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| line.split('\t').next().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn kubectl_completes_verbs_jobs_and_flags() {
    let stage = Stage::new("plugin-words").await;
    stage.run(&["create", "-f", "examples/mxnet/train.yaml"]).await;
    assert_eq!(completed(&stage, &["su"]).await, ["suspend", ":4"]);
    assert_eq!(completed(&stage, &["status", ""]).await, ["spirals", ":4"]);
    assert_eq!(
        completed(&stage, &["logs", "mxjob/"]).await,
        ["mxjob/spirals", ":4"]
    );
    assert_eq!(
        completed(&stage, &["logs", "spirals", "--role", "w"]).await,
        ["worker", ":4"]
    );
    assert_eq!(
        completed(&stage, &["logs", "spirals", "--rep"]).await,
        ["--replica", ":4"]
    );
    assert_eq!(
        completed(&stage, &["scale", "spirals", "--role", ""]).await,
        ["scheduler=1", "server=2", "worker=2", ":4"]
    );
    assert_eq!(completed(&stage, &["list", "py"]).await, ["pytorchjob", ":4"]);
    assert_eq!(
        completed(&stage, &["wait", "spirals", "--for", "s"]).await,
        ["succeeded", "suspended", ":4"]
    );
    assert_eq!(
        completed(&stage, &["wait", "spirals", "--for=su"]).await,
        ["succeeded", "suspended", ":4"]
    );
    let namespaces = completed(&stage, &["status", "-n", &stage.namespace]).await;
    assert_eq!(namespaces, [stage.namespace.as_str(), ":4"]);
    // Another namespace has no jobs.
    assert_eq!(
        completed(&stage, &["status", "-n", "default", "spi"]).await,
        [":4"]
    );
}
