//! Compares every example's objects on a real API server with the output of `render`, field by field.

use std::path::PathBuf;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use kube::Resource;
use kube::api::Api;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use training_job_testbed::cluster::{ControlPlane, Options, repository, wait_for_all};
use training_operator_testing::operator::{EVERY_KIND, start};
use training_operator_testing::program::run_with_input;

/// The folders with examples, and those with jobs of every form.
const FOLDERS: [&str; 8] = [
    "examples/mxnet",
    "examples/xgboost",
    "examples/tensorflow",
    "examples/pytorch",
    "examples/jax",
    "examples/paddle",
    "operator/tests/cases",
    "operator/tests/tensorflow",
];

fn manifests() -> Vec<PathBuf> {
    let folders = FOLDERS.iter().map(|folder| repository().join(folder));
    let files = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "yaml"));
    files.sort();
    assert!(files.len() > 15, "{files:?}");
    files
}

/// Checks that every field of `render` is equal in `real`.
fn includes(at: &str, render: &Value, real: &Value, differences: &mut Vec<String>) {
    match (render, real) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, a) in a {
                includes(
                    &format!("{at}.{key}"),
                    a,
                    b.get(key).unwrap_or(&Value::Null),
                    differences,
                );
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (n, (a, b)) in a.iter().zip(b).enumerate() {
                includes(&format!("{at}[{n}]"), a, b, differences);
            }
        }
        // Admission adds tolerations of node conditions.
        (Value::Array(a), Value::Array(b)) if at.ends_with(".tolerations") && b.starts_with(a) => {}
        (a, b) if a == b => {}
        (Value::String(a), Value::String(b)) if is_quantity(at) && amount(a) == amount(b) => {}
        (a, b) => differences.push(format!("{at}: render {a}, real {b}")),
    }
}

fn is_quantity(at: &str) -> bool {
    [".limits.", ".requests.", ".sizeLimit"]
        .iter()
        .any(|part| at.contains(part))
}

fn amount(text: &str) -> f64 {
    training_job::validate::amount(text).unwrap()
}

async fn real<K>(cluster: &ControlPlane, namespace: &str, count: usize) -> Vec<Value>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + Send
        + DeserializeOwned
        + Serialize
        + 'static,
{
    let api: Api<K> = Api::namespaced(cluster.client(), namespace);
    let made = "training.kubeflow.org/operator-name";
    let all = wait_for_all(api, made, |all| all.len() == count).await;
    all.iter()
        .map(|object| serde_json::to_value(object).unwrap())
        .collect()
}

#[tokio::test]
async fn an_operator_creates_the_objects_that_render_prints() {
    // The operator of this control plane serves all namespaces.
    let cluster = &ControlPlane::start(Options::default()).await;
    cluster.install_crds().await;
    let _operator = start(cluster, &[EVERY_KIND]).await;
    // A template refers to this class.
    let class = ["create", "priorityclass", "high", "--value=1000"];
    cluster.kubectl(&class).await.success();
    let mut compared = 0;
    for file in manifests() {
        let namespace = cluster.namespace("renders").await;
        let file = file.to_str().unwrap();
        let text = std::fs::read_to_string(file).unwrap();
        // A job that sets its namespace gets the test's namespace as well.
        let elsewhere = |line: &&str| !line.starts_with("  namespace: ");
        let manifest = text.lines().filter(elsewhere).collect::<Vec<_>>().join("\n");
        let manifest = manifest.replace(", namespace: team}", "}");
        let create = ["create", "--namespace", &namespace, "--filename", "-"];
        let created = cluster.kubectl_with_input(&create, &manifest).await.success();
        // The stored job has the UID for the owner references.
        let version = text.split("apiVersion: kubeflow.org/").nth(1).unwrap();
        let version = version.lines().next().unwrap().trim();
        let names: Vec<String> = created
            .lines()
            .map(|line| {
                // `mxjob.kubeflow.org/NAME created`: the job is read in the version in which it was written.
                let name = line.split(' ').next().unwrap();
                name.replacen('.', &format!("s.{version}."), 1)
            })
            .collect();
        let mut get = vec!["get", "--namespace", &namespace, "--output", "yaml"];
        get.extend(names.iter().map(String::as_str));
        let stored = cluster.kubectl(&get).await.success();
        let render = run_with_input(&["render", "-", "--output", "json"], stored.as_bytes());
        assert_eq!(render.code, Some(0), "{file}: {}", render.stderr);
        let renders: Value = serde_json::from_str(&render.stdout).unwrap();
        let renders = renders["items"].as_array().unwrap();
        let of = |kind: &str| renders.iter().filter(|r| r["kind"] == kind).count();
        let mut all = real::<ConfigMap>(cluster, &namespace, of("ConfigMap")).await;
        all.extend(real::<Service>(cluster, &namespace, of("Service")).await);
        all.extend(real::<Pod>(cluster, &namespace, of("Pod")).await);
        let mut differences = Vec::new();
        for render in renders {
            let same = |o: &&Value| {
                o["kind"] == render["kind"] && o["metadata"]["name"] == render["metadata"]["name"]
            };
            let name = render["metadata"]["name"].as_str().unwrap();
            let real = all
                .iter()
                .find(same)
                .unwrap_or_else(|| panic!("{file}: no {name}"));
            includes(name, render, real, &mut differences);
            compared += 1;
        }
        assert!(differences.is_empty(), "{file}:\n{}", differences.join("\n"));
    }
    assert!(compared > 100, "{compared}");
}
