//! Runs jobs on this machine, and on a real API server.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt};
use ray_train_operator::RayTrainJob;
use training_job::TrainingJob;
use training_job::api::ConditionType;
use training_job_testbed::cluster::{ControlPlane, Program, Signal, wait_for_all};

const PROGRAM: &str = env!("CARGO_BIN_EXE_ray-train-operator");

/// Runs the program in the directory of the example. Returns its exit code and its output.
fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let mut program = Command::new(PROGRAM);
    let output = program
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .output();
    let output = output.unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn a_job_runs_on_this_machine() {
    let (code, text) = run(&["local", "run", "jobs/echo.yaml"]);
    assert_eq!(code, Some(0), "{text}");
    let members = "['echo-head-svc', 'echo-small-0', 'echo-small-1', 'echo-large-0', 'echo-submitter-0']";
    for expected in ["joins as small", "joins as large", members] {
        assert!(text.contains(expected), "{text}");
    }
}

/// Users name the groups of workers.
#[test]
fn a_first_job_has_a_group_of_workers() {
    let (code, text) = run(&["new", "RayTrainJob", "--workers", "3", "--", "true"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("- groupName: worker\n"), "{text}");
}

#[test]
fn jobs_are_reviewed_without_a_cluster() {
    let (code, text) = run(&["validate", "jobs/mnist.yaml"]);
    assert_eq!((code, &*text), (Some(0), "1 valid job, 0 errors, 0 warnings\n"));
    let (code, text) = run(&["validate", "jobs/bad.yaml"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("jobs/bad.yaml:"), "{text}");
    let (code, text) = run(&[
        "render",
        "jobs/mnist.yaml",
        "--replica",
        "gpu-large-0",
        "--only",
        "env",
    ]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("mnist-gpu-large-0"), "{text}");
    let (code, text) = run(&["explain", "jobs/mnist.yaml"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("submitter starts when all pods of"), "{text}");
    let (code, text) = run(&["diff", "jobs/echo.yaml", "jobs/mnist.yaml"]);
    assert_eq!(code, Some(1), "{text}");
    let snapshots = concat!(env!("CARGO_TARGET_TMPDIR"), "/snapshots");
    let snapshot =
        |more: &[&str]| run(&[&["snapshot", "jobs/mnist.yaml", "--dir", snapshots], more].concat());
    assert_eq!(snapshot(&[]), (Some(0), String::new()));
    assert_eq!(snapshot(&["--check"]), (Some(0), String::new()));
    let (code, text) = run(&["--help"]);
    assert_eq!(code, Some(0));
    assert!(!text.contains("training-operator"), "{text}");
}

#[tokio::test]
async fn a_job_runs_in_a_cluster() {
    let plane = ControlPlane::shared().await;
    let own = plane.namespace("ray-train-operator").await;
    let admin = plane.kubeconfig();
    let doctor = || run(&["doctor", "--kubeconfig", admin.to_str().unwrap()]);
    let (code, text) = doctor();
    assert_eq!(code, Some(1), "{text}");
    let missing = "CRD raytrainjobs.example.dev: warning: not installed; apply it with: ray-train-operator crd --kind RayTrainJob | ";
    assert!(text.contains(missing), "{text}");
    let manifests = [
        "manifests",
        "--image=example.com/ray-train:1",
        "--namespace",
        &own,
    ];
    let (code, printed) = run(&manifests);
    assert_eq!(code, Some(0), "{printed}");
    let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    plane.kubectl_with_input(&apply, &printed).await.success();
    plane.served("raytrainjobs.example.dev").await;
    let kubeconfig = plane
        .kubeconfig_for_service_account(&own, "ray-train-operator")
        .await;
    let team = plane.namespace("ray").await;
    let client = plane.client_of(&kubeconfig).await;
    plane.wait_until_allowed(&client, &team, "create", "pods").await;
    // Nothing runs the Deployment here.
    let (code, text) = doctor();
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("CRDs: 1 of 1 current\n"), "{text}");
    assert!(text.contains("warning: 0 of 2 pods are ready; "), "{text}");
    assert!(
        text.contains("error: no process holds it, so no jobs run; "),
        "{text}"
    );
    assert!(text.ends_with("errors: 1, warnings: 1\n"), "{text}");
    let flags = ["run", "--metrics-bind-address=0", "--health-probe-bind-address=0"];
    let operator = plane.spawn(Program::new(PROGRAM).args(flags).env("KUBECONFIG", &kubeconfig));

    let create = async |file: &str| {
        let file = format!("examples/ray-train/jobs/{file}.yaml");
        plane
            .kubectl(&["--namespace", &team, "create", "-f", &file])
            .await
    };
    let refused = create("bad").await.stderr;
    for words in [
        "spec.workerGroups[0].replicas",
        "must be at least minReplicas; raise it, or lower minReplicas",
        "must be at most maxReplicas; lower it, or raise maxReplicas",
        "another role of the job has the name head (case is ignored); choose another name",
        "must have a container named \"ray-head\"",
        "must be at most 1 (is 2)",
        "must be at most 10 (is 11)",
    ] {
        assert!(refused.contains(words), "{words}: {refused}");
    }
    create("mnist").await.success();

    let labels = "training.kubeflow.org/operator-name=raytrainjob-controller";
    let pods: Api<Pod> = Api::namespaced(plane.client(), &team);
    let cluster = ["mnist-cpu-0", "mnist-cpu-1", "mnist-gpu-large-0", "mnist-head-0"];
    wait_for_all(pods.clone(), labels, |all| names(all) == cluster).await;
    let kubelet = plane.kubelet(&team).await;
    for pod in cluster {
        kubelet.runs(pod).await;
    }
    wait_for_all(pods, labels, |all| all.len() == 5).await;
    kubelet.runs("mnist-submitter-0").await;
    kubelet.succeeds("mnist-submitter-0").await;
    let has_succeeded = |job: Option<&RayTrainJob>| {
        let status = job.and_then(TrainingJob::status);
        status.is_some_and(|status| status.is(ConditionType::Succeeded))
    };
    plane.wait(&team, "mnist", has_succeeded).await;
    operator.signal(Signal::TERM);
    assert_eq!(operator.exit_code().await, 0, "{}", operator.text());
}

fn names(pods: &[Pod]) -> Vec<String> {
    let mut names: Vec<String> = pods.iter().map(ResourceExt::name_any).collect();
    names.sort();
    names
}

#[tokio::test]
async fn kubectl_uses_a_cluster_on_this_machine() {
    let plane = ControlPlane::shared().await;
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join("local-cluster");
    let kubeconfig = file.to_str().unwrap();
    let start = || {
        let flags = ["local", "cluster", "--kubeconfig", kubeconfig];
        plane.spawn(Program::new(PROGRAM).args(flags))
    };
    let cluster = start();
    cluster.wait_for_line("cluster ready").await;
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let second = start();
    assert_eq!(second.exit_code().await, 2, "{}", second.text());
    assert!(
        second.text().contains("another local cluster uses it"),
        "{}",
        second.text()
    );

    let kubectl = async |arguments: &[&str]| {
        let all = [&["--kubeconfig", kubeconfig], arguments].concat();
        plane.kubectl(&all).await
    };
    let job = "examples/ray-train/jobs/echo.yaml";
    kubectl(&["apply", "--filename", job]).await.success();
    let ended = [
        "wait",
        "--for=condition=Succeeded",
        "raytrainjob/echo",
        "--timeout=2m",
    ];
    kubectl(&ended).await.success();
    cluster
        .wait_for_line("default/echo-large-0 | joins as large")
        .await;
    let described = kubectl(&["describe", "raytrainjob", "echo"]).await.stdout;
    assert!(
        described.contains("RayTrainJob echo is successfully completed."),
        "{described}"
    );
    let explained = kubectl(&["explain", "raytrainjob.spec.workerGroups"])
        .await
        .stdout;
    assert!(explained.contains("maxReplicas"), "{explained}");
    let misspelt = r#"{"apiVersion": "example.dev/v1", "kind": "RayTrainJob", "metadata": {"name": "a"}, "spec": {"haed": {}}}"#;
    let apply = ["--kubeconfig", kubeconfig, "apply", "-f", "-"];
    let refused = plane.kubectl_with_input(&apply, misspelt).await.stderr;
    assert!(refused.contains(r#"unknown field "spec.haed""#), "{refused}");
    kubectl(&["delete", "raytrainjob", "echo"]).await.success();
    assert_eq!(kubectl(&["get", "pods", "--output=name"]).await.stdout, "");
    let refused = kubectl(&["--token=guessed", "get", "pods"]).await.stderr;
    assert!(
        refused.contains("Unauthorized") || refused.contains("must be logged in"),
        "{refused}"
    );

    cluster.signal(Signal::INT);
    assert_eq!(cluster.exit_code().await, 0, "{}", cluster.text());
    assert!(!file.exists());
}
