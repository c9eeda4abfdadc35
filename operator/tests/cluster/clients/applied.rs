//! Nothing is out of sync after an apply, neither for `kubectl diff` nor for the tools that use the same method.

use std::fs;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::Api;
use training_job_testbed::cluster::{repository, wait_for_all};

use super::stage::Stage;

/// The annotation in which kubectl records the applied manifest.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Returns the examples of all kinds of the current group. The examples of older operators are exports from clusters.
fn examples() -> Vec<PathBuf> {
    let folders = fs::read_dir(repository().join("examples")).unwrap();
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).into_iter().flatten());
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|file| {
        let is_job =
            fs::read_to_string(file).is_ok_and(|text| text.contains("\napiVersion: kubeflow.org/v1\n"));
        let is_old = file.components().any(|part| part.as_os_str() == "legacy");
        is_job && !is_old && file.extension().is_some_and(|ending| ending == "yaml")
    });
    files.sort();
    assert!(files.len() >= 14, "{files:#?}");
    files
}

/// Applies a file with these flags, waits until the operator has created all objects, and compares.
async fn stays_in_sync(stage: &Stage, file: &Path, flags: &[&str]) {
    let file = file.to_str().unwrap();
    let with = |verb| [&[verb, "-f", file][..], flags].concat();
    let applied = stage.run(&with("apply")).await;
    let name = applied
        .split_whitespace()
        .next()
        .unwrap()
        .split_once('/')
        .unwrap()
        .1;
    let label = format!("training.kubeflow.org/job-name={name}");
    let api: Api<Pod> = Api::namespaced(stage.cluster.client(), &stage.namespace);
    let pods = wait_for_all(api, &label, |pods| !pods.is_empty()).await;
    for pod in &pods {
        assert!(
            !pod.annotations().contains_key(LAST_APPLIED),
            "{file}: {}",
            pod.name_any()
        );
        stage.kubelet.runs(&pod.name_any()).await;
    }
    let is_created = ["wait", "-f", file, "--for=condition=Created", "--timeout=60s"];
    stage.run(&is_created).await;
    let diff = stage.kubectl(&with("diff")).await;
    assert_eq!(diff.code, 0, "{file} {flags:?}: {}", diff.stderr);
    assert_eq!(&*diff.stdout, "", "{file} {flags:?}: {}", diff.stderr);
    let generation = ["get", "-f", file, "-o", "jsonpath={.metadata.generation}"];
    let before = stage.run(&generation).await;
    let again = stage.run(&with("apply")).await;
    assert_eq!(stage.run(&generation).await, before, "{file} {flags:?}");
    let has_empty_map = fs::read_to_string(file).unwrap().contains(": {}");
    let says = match flags.is_empty() {
        // kubectl sends an empty map again if the server has set defaults below it. Nothing changes.
        true if has_empty_map => " configured",
        true => " unchanged",
        false => " serverside-applied",
    };
    assert!(again.trim_end().ends_with(says), "{file}: {again}");
    stage.run(&["delete", "-f", file]).await;
}

#[tokio::test]
async fn nothing_differs_after_a_client_side_apply() {
    let stage = Stage::with_all_kinds("applied-client").await;
    for file in examples() {
        stays_in_sync(&stage, &file, &[]).await;
    }
}

#[tokio::test]
async fn nothing_differs_after_a_server_side_apply() {
    let stage = Stage::with_all_kinds("applied-server").await;
    for file in examples() {
        stays_in_sync(&stage, &file, &["--server-side"]).await;
    }
}
