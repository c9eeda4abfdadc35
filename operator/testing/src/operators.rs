//! The two operators.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use training_job_testbed::cluster::{Background, ControlPlane, Program, free_port, repository};

use crate::operator::NO_PAGES;
use crate::program;

/// Starts our operator for one namespace, with MXJobs unless other kinds are given.
pub async fn ours(cluster: &ControlPlane, kubeconfig: &Path, namespace: &str, flags: &[&str]) -> Background {
    started(&program::path(), cluster, kubeconfig, namespace, flags).await
}

/// Starts the operator of a release, which is this program, as the cluster's administrator.
pub async fn release(program: &Path, cluster: &ControlPlane, namespace: &str, flags: &[&str]) -> Background {
    started(program, cluster, &cluster.kubeconfig(), namespace, flags).await
}

async fn started(
    program: &Path,
    cluster: &ControlPlane,
    kubeconfig: &Path,
    namespace: &str,
    flags: &[&str],
) -> Background {
    let given = flags.iter().any(|flag| flag.starts_with("--enable-scheme"));
    let program = Program::new(program)
        .args(["run", "--namespace", namespace])
        .args((!given).then_some("--enable-scheme=MXJob"))
        .args(NO_PAGES)
        .args(flags)
        .env("KUBECONFIG", kubeconfig);
    let operator = cluster.spawn(program);
    operator.wait_for_line("running jobs").await;
    operator
}

/// Starts the Go operator v1.8.1 for one namespace, with MXJobs unless other kinds are given. `program` is its name
/// in `target/go-operator`. The operator works only once its webhooks are ready. There are no webhooks here, but the
/// operator needs a configuration of webhooks, a Secret to fill, and two directories with certificates. Only their
/// existence matters.
pub async fn theirs(
    cluster: &ControlPlane,
    kubeconfig: &Path,
    namespace: &str,
    program: &str,
    flags: &[&str],
) -> Background {
    let given = flags.iter().any(|flag| flag.starts_with("--enable-scheme"));
    let home = cluster.directory().join(format!("go-operator-{namespace}"));
    let certificates = home.join("k8s-webhook-server/serving-certs");
    fs::create_dir_all(&certificates).unwrap();
    for (from, to) in [("apiserver.crt", "tls.crt"), ("apiserver.key", "tls.key")] {
        let from = cluster.directory().join("certificates").join(from);
        fs::copy(from, certificates.join(to)).unwrap();
    }
    // The program contains this path. Other tests may use it as well, so it is never removed.
    let fixed = Path::new("/tmp/k8s-webhook-server/serving-certs");
    fs::create_dir_all(fixed).unwrap();
    if !fixed.join("tls.crt").exists() {
        fs::write(fixed.join("tls.crt"), "").unwrap();
    }
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Secret",
         "metadata": {"name": "training-operator-webhook-cert", "namespace": namespace}},
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
         "metadata": {"name": "validator.training-operator.kubeflow.org"}, "webhooks": []},
    ]});
    // Each test has its own Secret. The first one creates the configuration.
    let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    cluster
        .kubectl_with_input(&apply, &objects.to_string())
        .await
        .success();
    let program = Program::new(built(program))
        .args(["--namespace", namespace])
        .args((!given).then_some("--enable-scheme=mxjob"))
        .args(NO_PAGES)
        .args(flags)
        .args([format!("--webhook-server-port={}", free_port())])
        .env("KUBECONFIG", kubeconfig)
        .env("MY_POD_NAMESPACE", namespace)
        .env("TMPDIR", &home);
    let operator = cluster.spawn(program);
    operator.wait_for_line("Starting workers").await;
    operator
}

/// Returns the program, which is built if it is missing.
fn built(program: &str) -> PathBuf {
    let script = match program {
        "unlimited" => "tests/go-operator/unlimited/build.sh",
        _ => "tests/go-operator/build.sh",
    };
    let made = Command::new(repository().join(script))
        .stdin(Stdio::null())
        .output();
    let made = made.unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    repository().join("target/go-operator").join(program)
}
