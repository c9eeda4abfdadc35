//! `helm test`, and the command that its pod runs.

use std::fs;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::Value;
use training_job_testbed::cluster::{Background, Program, wait, wait_for_all};
use training_operator_testing::program;

use crate::helm::{Helm, RELEASE, chart};
use crate::release::{Cluster, NAMESPACE, stop};
use crate::values::FLAGS;

const TEST: &str = "training-operator-test";

/// Runs the program of the test's pod as its kubelet would.
async fn start(cluster: &Cluster) -> Background {
    let pods = cluster.pods(NAMESPACE);
    let pod = wait(pods, TEST, |pod: Option<&Pod>| pod.is_some()).await.unwrap();
    let container = &pod.spec.as_ref().unwrap().containers[0];
    let files = cluster.get(&["configmap", TEST, "--namespace", NAMESPACE]).await;
    let file = cluster.plane.directory().join("job.yaml");
    fs::write(&file, files[0]["data"]["job.yaml"].as_str().unwrap()).unwrap();
    let arguments = container.args.iter().flatten();
    let arguments = arguments.map(|argument| argument.replace("/test/job.yaml", file.to_str().unwrap()));
    let account = pod
        .spec
        .as_ref()
        .unwrap()
        .service_account_name
        .as_deref()
        .unwrap();
    let kubeconfig = cluster
        .plane
        .kubeconfig_for_service_account(NAMESPACE, account)
        .await;
    let program = Program::new(program::path())
        .args(arguments)
        .env("KUBECONFIG", kubeconfig);
    cluster.plane.spawn(program)
}

/// Runs `helm test` of a release whose job ends with this code, and returns the exit code of the test's program, its
/// output, and the exit code of Helm.
async fn test(cluster: &Cluster, namespace: &str, code: i32) -> (i32, String, i32) {
    let kubelets = [NAMESPACE, namespace].map(|namespace| cluster.plane.kubelet(namespace));
    let [of_test, of_job] = kubelets;
    let (of_test, of_job) = (of_test.await, of_job.await);
    let ended = async {
        let started = start(cluster).await;
        let pods = cluster.pods(namespace);
        let label = "training.kubeflow.org/job-name";
        let pods = wait_for_all(pods, label, |all: &[Pod]| all.len() == 1).await;
        of_job.runs(&pods[0].name_any()).await;
        of_job.exits(&pods[0].name_any(), "pytorch", code).await;
        let exit_code = started.exit_code().await;
        of_test.exits(TEST, "test", exit_code).await;
        (exit_code, started.text())
    };
    let arguments = ["test", RELEASE, "--timeout", "3m"];
    let (helm, (exit_code, text)) = tokio::join!(cluster.helm(&arguments), ended);
    (exit_code, text, helm.code)
}

async fn runs_a_job(helm: Helm, watched: Option<&str>) {
    let cluster = Cluster::new(helm).await;
    // Everything that can be enabled without the definitions of others.
    let mut values = vec![
        "kinds.MPIJob=true,kinds.MxJob=true,kinds.TfJob=true".to_owned(),
        "metrics.dashboard.enabled=true,networkPolicy.enabled=true,rbac.kubeflowUsers=true".to_owned(),
    ];
    values.extend(FLAGS.map(|(value, _)| value.to_owned()));
    let namespace = match watched {
        Some(prefix) => cluster.plane.namespace(prefix).await,
        None => NAMESPACE.to_owned(),
    };
    if watched.is_some() {
        values.push(format!("watchNamespace={namespace}"));
    }
    // PodGroups are not defined here.
    values.retain(|value| !value.starts_with("gangScheduling"));
    let flags: Vec<&str> = values.iter().flat_map(|value| ["--set", value]).collect();
    cluster.install(&chart(), &flags).await.success();
    let stored = cluster.stored_bytes().await;
    // The API server rejects Secrets of more than 1 MiB.
    assert!(stored.iter().all(|bytes| *bytes < 400_000), "{stored:?}");

    let operator = cluster.operator().await;
    let (code, text, helm) = test(&cluster, &namespace, 0).await;
    assert_eq!((code, helm), (0, 0), "{text}");
    assert!(
        text.contains(": created\n") && text.contains("\nSucceeded: "),
        "{text}"
    );
    let (code, text, helm) = test(&cluster, &namespace, 1).await;
    assert_eq!(code, 1, "{text}");
    assert_ne!(helm, 0);
    assert!(text.contains("\nFailed: "), "{text}");
    let left: Vec<_> = cluster
        .jobs(&namespace)
        .list(&ListParams::default())
        .await
        .unwrap()
        .items;
    assert!(left.is_empty(), "{left:?}");
    stop(operator).await;
}

#[tokio::test]
async fn the_test_of_helm_3_runs_a_job() {
    runs_a_job(Helm::Three, None).await;
}

#[tokio::test]
async fn the_test_of_helm_4_runs_a_job() {
    runs_a_job(Helm::Four, Some("watched")).await;
}

/// The API server checks the job of `helm test`, and no operator ends it.
#[tokio::test]
async fn the_job_of_each_kind_is_valid_and_a_job_that_does_not_end_is_deleted() {
    let cluster = Cluster::new(Helm::Four).await;
    cluster.plane.install_crds().await;
    let namespace = cluster.plane.namespace("smoke").await;
    let kinds = [
        "PyTorchJob",
        "XGBoostJob",
        "TFJob",
        "JAXJob",
        "PaddleJob",
        "MXJob",
    ];
    for (n, kind) in kinds.iter().enumerate() {
        let off: Vec<String> = kinds[..n]
            .iter()
            .map(|kind| format!("kinds.{kind}=false"))
            .collect();
        let mut arguments = vec![
            "template",
            RELEASE,
            "manifests/helm/training-operator",
            "--show-only",
        ];
        arguments.extend(["templates/tests/job.yaml", "--set", "crds.install=false"]);
        arguments.extend(off.iter().flat_map(|value| ["--set", value]));
        let rendered = cluster.helm.run(&arguments).success();
        let rendered: Vec<Value> = training_operator_testing::manifests::objects(&rendered);
        let job = rendered
            .iter()
            .find_map(|object| object["data"]["job.yaml"].as_str())
            .unwrap();
        assert!(job.contains(&format!("kind: {kind}\n")), "{job}");
        let file = cluster.plane.directory().join("job.yaml");
        fs::write(&file, job).unwrap();
        let program = Program::new(program::path())
            .args(["smoke-test", "--timeout=1s", "--namespace", &namespace])
            .args([&file]);
        let ended = cluster.plane.spawn(program);
        assert_eq!(ended.exit_code().await, 1, "{}", ended.text());
        assert!(ended.text().contains("did not end in time"), "{}", ended.text());
    }
    let jobs = cluster.jobs(&namespace);
    assert!(jobs.list(&ListParams::default()).await.unwrap().items.is_empty());
}
