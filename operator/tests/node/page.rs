//! Runs the commands of docs/users/install.md on the real nodes, in this order: install with Helm, upgrade, remove, install
//! with kustomize, move to Helm.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use training_job_testbed::cluster::{ControlPlane, Program, repository};
use training_operator_testing::program;

use crate::cluster::cluster;
use crate::install::NAMESPACE;
use crate::job::small;
use crate::stage::Stage;

/// Returns the commands of a section, which are in its blocks of shell.
fn commands(section: &str) -> String {
    let page = fs::read_to_string(repository().join("docs/users/install.md")).unwrap();
    let heading = |text: &str| text.trim_start_matches('#').trim_start().starts_with(section);
    let mut sections = page.split("\n##");
    let text = sections.find(|text| heading(text)).unwrap();
    let blocks: Vec<_> = text
        .split("```sh\n")
        .skip(1)
        .map(|block| block.split("```").next().unwrap())
        .collect();
    assert!(!blocks.is_empty(), "{section} has no commands");
    // No release is needed to test the next one.
    blocks.concat().replace(
        "oci://ghcr.io/training-job/charts/training-operator --version 0.1.0",
        "manifests/helm/training-operator",
    )
}

/// Returns a folder with the programs that the page names.
fn programs(plane: &ControlPlane) -> PathBuf {
    let folder = plane.directory().join("programs");
    fs::create_dir_all(&folder).unwrap();
    let target = repository().join("target");
    for (name, path) in [
        ("helm", target.join("helm/helm4")),
        ("kubectl", target.join("control-plane/kubectl")),
        ("training-operator", program::path()),
    ] {
        symlink(path, folder.join(name)).unwrap();
    }
    folder
}

async fn run(plane: &ControlPlane, programs: &Path, commands: &str) {
    let path = format!("{}:{}", programs.display(), env::var("PATH").unwrap());
    let shell = Program::new("bash")
        .args(["-euxo", "pipefail", "-c", commands])
        .env("PATH", path)
        .env("KUBECONFIG", plane.kubeconfig());
    let process = plane.spawn(shell);
    let code = process.exit_code().await;
    assert_eq!(code, 0, "{}", process.text());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_installs_upgrades_and_removes_the_operator() {
    let plane = cluster().await;
    let programs = &programs(plane);
    // Begins as a cluster that has never had the operator.
    let remove = format!(
        "kubectl delete crd --selector app.kubernetes.io/name=training-operator
         kubectl delete clusterrole,clusterrolebinding --selector app.kubernetes.io/name=training-operator
         kubectl delete clusterrole training-jobs-namespace-admin
         kubectl delete namespace {NAMESPACE}"
    );
    run(plane, programs, &remove).await;
    for section in ["With Helm", "See that it works", "Upgrade"] {
        run(plane, programs, &commands(section)).await;
    }
    let stage = Stage::new("page").await;
    let job = small("stays");
    stage.create(&job).await;
    stage.has_pods(4).await;
    let uids = ["get", "pods", "-o", "jsonpath={.items[*].metadata.uid}"];
    let pods = stage.kubectl(&uids).await;

    run(plane, programs, &commands("Remove it")).await;
    for section in [
        "With kustomize",
        "See that it works",
        "From kustomize to Helm",
        "See that it works",
    ] {
        run(plane, programs, &commands(section)).await;
    }
    assert_eq!(stage.kubectl(&uids).await, pods);
}
