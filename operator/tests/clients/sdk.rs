//! The Go operator's Python SDK, `kubeflow-training` 1.8.1.

use std::process::{Command, Stdio};

use training_job_testing::cluster::{Program, repository};

use crate::stage::Stage;

/// The Python with the SDK. It is made if it is not there.
fn python() -> Program {
    let made = Command::new(repository().join("tools/venv.sh"))
        .arg("sdk")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{told}");
    Program::new(repository().join(".venv/sdk/bin/python"))
}

#[tokio::test]
async fn jobs_of_each_kind_live_through_the_python_sdk() {
    let stage = Stage::new("sdk").await;
    let certificates = stage.cluster.directory().join("certificates");
    let file = |name: &str| certificates.join(name).display().to_string();
    // With `-I` it would not find the module beside it.
    let script = python()
        .args([
            "-B",
            "-E",
            "-s",
            "operator/tests/clients/sdk.py",
            &stage.namespace,
        ])
        .args([file("apiserver.crt"), file("apiserver.key")])
        .env("KUBECONFIG", stage.cluster.kubeconfig_in(&stage.namespace));
    let script = stage.cluster.spawn(script);
    let lives = [
        "MXJob",
        "TFJob",
        "XGBoostJob",
        "PyTorchJob",
        "PaddleJob",
        "MPIJob",
        "create_job",
        "train",
    ];
    for life in lives {
        script.wait_for_line(&format!("lived: {life}")).await;
    }
    assert_eq!(script.exit_code().await, 0);
    assert_eq!(stage.operator.ended(), None);
}
