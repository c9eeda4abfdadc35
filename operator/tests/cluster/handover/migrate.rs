//! Runs the commands of docs/users/migrate.md for the stand-alone operator, one by one.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use training_job::api::ConditionType;
use training_job_testbed::cluster::{ControlPlane, Options, repository};
use training_operator_testing::operators;

use super::jobs::Jobs;
use super::standalone::{Old, Release, Stage};

/// The commands of the page's section about the stand-alone operator, in their order.
fn commands() -> Vec<String> {
    let page = fs::read_to_string(repository().join("docs/users/migrate.md")).unwrap();
    let section = page
        .split("\n## ")
        .find(|s| s.starts_with("From the stand-alone"))
        .unwrap();
    let blocks = section.split("```sh\n").skip(1);
    let lines = blocks.flat_map(|block| block.split("```").next().unwrap().lines());
    lines.map(str::to_owned).collect()
}

/// Returns the objects of the stand-alone operator's manifests, its definition included.
fn installation() -> Value {
    let meta = json!({"name": "mxnet-operator"});
    let in_kubeflow = json!({"name": "mxnet-operator", "namespace": "kubeflow"});
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    let names = json!({"kind": "MXJob", "plural": "mxjobs", "singular": "mxjob", "listKind": "MXJobList"});
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
         "metadata": {"name": "mxjobs.kubeflow.org"},
         "spec": {"group": "kubeflow.org", "scope": "Namespaced", "names": names,
                  "versions": [version("v1", true), version("v1beta1", false)]}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kubeflow"}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": in_kubeflow},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": meta, "rules": []},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": meta,
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "mxnet-operator"},
         "subjects": [{"kind": "ServiceAccount", "name": "mxnet-operator", "namespace": "kubeflow"}]},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": in_kubeflow, "spec": {
            "selector": {"matchLabels": {"app": "mxnet-operator"}},
            "template": {"metadata": {"labels": {"app": "mxnet-operator"}}, "spec": {
                "serviceAccountName": "mxnet-operator",
                "containers": [{"name": "mxnet-operator", "image": "example.com/mxnet-operator:v1"}]}}}},
    ]})
}

/// A directory as the page's reader has it: with kubectl, this program, the manifests, and jobs of his own.
fn desk(cluster: &ControlPlane) -> std::path::PathBuf {
    let desk = cluster.directory().join("desk");
    fs::create_dir_all(desk.join("bin")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_training-operator"));
    symlink(program, desk.join("bin/training-operator")).unwrap();
    let kubectl = repository().join("target/control-plane/kubectl");
    symlink(kubectl, desk.join("bin/kubectl")).unwrap();
    for folder in ["crds", "manifests"] {
        symlink(repository().join(folder), desk.join(folder)).unwrap();
    }
    fs::create_dir(desk.join("jobs")).unwrap();
    let jobs = repository().join("operator/tests/cluster/admission/standalone");
    for file in fs::read_dir(jobs).unwrap().map(|entry| entry.unwrap()) {
        fs::copy(file.path(), desk.join("jobs").join(file.file_name())).unwrap();
    }
    desk
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_leads_from_the_stand_alone_operator_to_ours() {
    let cluster = &ControlPlane::start(Options::default()).await;
    let create = ["create", "-f", "-"];
    let old = installation().to_string();
    cluster.kubectl_with_input(&create, &old).await.success();
    cluster.served("mxjobs.kubeflow.org").await;
    let namespace = cluster.namespace("team").await;
    let (client, jobs) = (cluster.client(), Jobs::new(cluster, &namespace).await);
    let running = [Release::Newest, Release::Beta].map(|release| Old {
        release,
        stage: Stage::Running,
    });
    for job in running {
        job.make(&client, &jobs, &namespace).await;
    }
    let before = jobs.identities().await;

    let desk = desk(cluster);
    let run = |command: &str| -> Output {
        let path = format!(
            "{}:{}",
            desk.join("bin").display(),
            std::env::var("PATH").unwrap()
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(&desk).env("PATH", path);
        shell.env("KUBECONFIG", cluster.kubeconfig()).output().unwrap()
    };
    let mut told = Vec::new();
    let mut ours = None;
    for command in commands() {
        let output = run(&command);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{command}: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        if command.ends_with("-k manifests/overlays/standalone") {
            // Nothing runs the Deployment here, so the test says that its pods are ready and that one holds the lease.
            let ready = r#"{"status":{"replicas":2,"readyReplicas":2,"availableReplicas":2}}"#;
            let patch = [
                "patch",
                "deployment/training-operator",
                "--namespace=kubeflow",
                "--subresource=status",
            ];
            let patch = [&patch[..], &["--type=merge", "--patch", ready]].concat();
            cluster.kubectl(&patch).await.success();
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": "1ca428e5.training-operator.kubeflow.org", "namespace": "kubeflow"},
                "spec": {
                    "holderIdentity": "training-operator",
                    "leaseDurationSeconds": 3_600,
                    "renewTime": MicroTime(Timestamp::now()),
                },
            });
            let apply = ["apply", "--server-side", "-f", "-"];
            cluster
                .kubectl_with_input(&apply, &lease.to_string())
                .await
                .success();
            cluster.install_crds().await;
            let flags = ["--default-restart-scope=Replica"];
            ours = Some(operators::ours(cluster, &cluster.kubeconfig(), &namespace, &flags).await);
            for job in running {
                jobs.complete(&job.name()).await;
            }
        }
        told.push((command, text));
    }
    let all: Vec<_> = told.iter().map(|(command, _)| &**command).collect();
    let of = |command: &str| &told.iter().find(|(c, _)| c.starts_with(command)).unwrap().1;
    assert!(
        of("training-operator doctor ||").contains("runs an older operator"),
        "{all:?}"
    );
    assert_eq!(of("kubectl get crd"), "[\"v1\"]");
    assert!(
        of("kubectl get pods").contains("beta-running-worker-1"),
        "{}",
        of("kubectl get pods")
    );
    let last = told
        .iter()
        .rfind(|(command, _)| command == "training-operator doctor");
    let last = &last.unwrap().1;
    assert!(last.contains("CRDs: 6 of 6 current\n"), "{last}");
    assert!(last.ends_with("errors: 0, warnings: 0\n"), "{last}");
    assert!(ours.is_some(), "{all:?}");

    assert_eq!(jobs.identities().await, before);
    for job in running {
        jobs.is(&job.name(), ConditionType::Running).await;
        job.go_on(&jobs).await;
    }
}
