//! A chart of a user, with a job, on `local cluster`.

use std::fs;

use rustix::process::Signal;
use training_job_testbed::cluster::{ControlPlane, Options, Program};

use crate::helm::Helm;

const TEMPLATE: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {word: {{ .Values.word | quote }}}
---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: {{ .Release.Name }}}
spec:
  runPolicy: {suspend: true}
  pytorchReplicaSpecs:
    Worker:
      replicas: 1
      template: {spec: {containers: [{name: pytorch, image: none}]}}
"#;

#[tokio::test]
async fn helm_3_and_4_release_a_job_on_a_local_cluster() {
    let plane = ControlPlane::start(Options::default()).await;
    for helm in [Helm::Three, Helm::Four] {
        release(&plane, helm).await;
    }
}

async fn release(plane: &ControlPlane, helm: Helm) {
    let folder = plane.directory().join(format!("local-{helm:?}"));
    let chart = folder.join("chart");
    fs::create_dir_all(chart.join("templates")).unwrap();
    fs::write(
        chart.join("Chart.yaml"),
        "apiVersion: v2\nname: job\nversion: 0.1.0\n",
    )
    .unwrap();
    fs::write(chart.join("values.yaml"), "word: one\n").unwrap();
    fs::write(chart.join("templates/all.yaml"), TEMPLATE).unwrap();
    let kubeconfig = folder.join("kubeconfig");
    let cluster = plane.spawn(
        Program::new(env!("CARGO_BIN_EXE_training-operator"))
            .args(["local", "cluster", "--kubeconfig"])
            .args([&kubeconfig]),
    );
    cluster.wait_for_line("cluster ready").await;

    let chart = chart.to_str().unwrap();
    for (arguments, expected) in [
        (&["install", "r", chart][..], "STATUS: deployed"),
        (&["upgrade", "r", chart, "--set", "word=two"], "REVISION: 2"),
        (&["get", "manifest", "r"], "word: \"two\""),
        (&["rollback", "r", "1"], "Rollback was a success"),
        (&["status", "r"], "REVISION: 3"),
        (&["get", "manifest", "r"], "word: \"one\""),
        (&["list", "-q"], "r\n"),
        (&["history", "r"], "Rollback to 1"),
        (&["uninstall", "r"], "release \"r\" uninstalled"),
    ] {
        let output = helm.run_with(&kubeconfig, &folder, arguments).await.success();
        assert!(output.contains(expected), "{helm:?} {arguments:?}: {output}");
    }
    let left = helm.run_with(&kubeconfig, &folder, &["list", "-q"]).await;
    assert_eq!(left.success().trim(), "");
    cluster.signal(Signal::INT);
    assert_eq!(cluster.exit_code().await, 0, "{}", cluster.text());
}
