//! The Go operator's Python SDK, `kubeflow-training`: 1.8.1 and 1.9.4, the last version.

use std::process::{Command, Stdio};

use training_job_testbed::cluster::{Program, repository};

use super::stage::Stage;

/// Returns the Python of an environment with the SDK. The environment is created if it is missing.
pub(super) fn python(environment: &str) -> Program {
    let made = Command::new(repository().join("tools/venv.sh"))
        .arg(environment)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{told}");
    Program::new(repository().join(".venv").join(environment).join("bin/python"))
}

#[tokio::test]
async fn jobs_of_each_kind_live_through_the_python_sdk() {
    let kinds = [
        "MXJob",
        "TFJob",
        "XGBoostJob",
        "PyTorchJob",
        "PaddleJob",
        "MPIJob",
    ];
    live("sdk", "sdk", kinds).await;
}

#[tokio::test]
async fn jobs_of_each_kind_live_through_the_last_python_sdk() {
    let kinds = [
        "TFJob",
        "XGBoostJob",
        "PyTorchJob",
        "PaddleJob",
        "MPIJob",
        "JAXJob",
    ];
    live("sdk-last", "sdk-1.9", kinds).await;
}

/// Runs the script for these kinds, which the SDK in the environment supports.
async fn live(namespace: &str, environment: &str, kinds: [&str; 6]) {
    let stage = Stage::with_all_kinds(namespace).await;
    let certificates = stage.cluster.directory().join("certificates");
    let file = |name: &str| certificates.join(name).display().to_string();
    // With `-I` Python would not find the module beside the script.
    let script = python(environment)
        .args([
            "-B",
            "-E",
            "-s",
            "operator/tests/cluster/clients/sdk.py",
            &stage.namespace,
        ])
        .args([file("apiserver.crt"), file("apiserver.key")])
        .env("KUBECONFIG", stage.cluster.kubeconfig_in(&stage.namespace));
    let script = stage.cluster.spawn(script);
    for life in kinds.into_iter().chain(["create_job", "train"]) {
        script.wait_for_line(&format!("lived: {life}")).await;
    }
    assert_eq!(script.exit_code().await, 0);
    assert_eq!(stage.operator.ended(), None);
}
