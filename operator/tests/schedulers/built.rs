//! The programs that `tests/schedulers/build.sh` has built.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use training_job_testbed::cluster::{Background, ControlPlane, Program, repository};

fn folder() -> PathBuf {
    repository().join("target/schedulers")
}

/// A program of that name.
pub(crate) fn program(name: &str) -> Program {
    let path = folder().join(name);
    assert!(
        path.is_file(),
        "{path:?} is missing: tests/schedulers/build.sh builds it"
    );
    Program::new(path)
}

/// The objects of a program's manifest.
pub(crate) fn manifest(name: &str, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder().join(format!("{name}.d")).join(file)).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    documents.into_iter().filter(Value::is_object).collect()
}

/// Applies all definitions that a program is built with, and awaits that their kinds are served.
pub(crate) async fn install_definitions(plane: &ControlPlane, name: &str) {
    let files = fs::read_dir(folder().join(format!("{name}.d"))).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let definitions: Vec<Value> = names
        .flat_map(|file| manifest(name, &file))
        .filter(|object| object["kind"] == "CustomResourceDefinition")
        .collect();
    assert!(!definitions.is_empty(), "{name} has no definitions");
    apply(plane, &definitions).await;
    for definition in definitions {
        plane
            .served(definition["metadata"]["name"].as_str().unwrap())
            .await;
    }
}

pub(crate) async fn apply(plane: &ControlPlane, objects: &[Value]) {
    let texts: Vec<_> = objects.iter().map(Value::to_string).collect();
    let (arguments, text) = (["apply", "--server-side", "-f", "-"], texts.join("\n---\n"));
    plane.kubectl_with_input(&arguments, &text).await.success();
}

/// The scheduler of the control plane's Kubernetes.
pub(crate) fn kube_scheduler(plane: &ControlPlane) -> Background {
    let kubeconfig = format!("--kubeconfig={}", plane.kubeconfig().display());
    let flags = ["--leader-elect=false", "--secure-port=0"];
    plane.spawn(program("kube-scheduler").args([kubeconfig]).args(flags))
}
