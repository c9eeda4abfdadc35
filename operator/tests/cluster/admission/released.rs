//! The examples in the Go operator's own repository, at the version that this operator replaces.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use training_job_testbed::cluster::ControlPlane;
use training_operator_testing::program::run;

use super::api;

/// Files without jobs: volumes, and an etcd for the rendezvous of PyTorch.
const OTHERS: [&str; 4] = [
    "pytorch/elastic/etcd.yaml",
    "tensorflow/distribution_strategy/keras-API/pvc.yaml",
    "tensorflow/mnist_with_summaries/tfevent-volume/tfevent-pv.yaml",
    "tensorflow/mnist_with_summaries/tfevent-volume/tfevent-pvc.yaml",
];

/// The invalid example and its error. Its templates set `apiVersion: v1` and `kind: Pod`, which are not fields of a
/// template. The Go operator's definitions lack them as well, so that kubectl rejects the example there, too.
const REFUSED: (&str, &str) = (
    "xgboost/smoke-dist/xgboostjob_v1alpha1_rabit_test.yaml",
    "unknown field \"spec.xgbReplicaSpecs.Master.template.kind\"",
);

#[derive(serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Module {
    dir: PathBuf,
}

/// Returns the folder of the Go operator's module. The module is downloaded unless the operator's build has done so.
pub(crate) fn module() -> PathBuf {
    let made = Command::new("go")
        .args([
            "mod",
            "download",
            "-json",
            "github.com/kubeflow/training-operator@v1.8.1",
        ])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
    let module: Module = serde_json::from_slice(&made.stdout).unwrap();
    module.dir
}

/// Returns all YAML files below a folder.
fn below(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| match path.is_dir() {
        true => below(&path),
        false => BTreeSet::from([path]),
    });
    files
        .filter(|path| path.extension().is_some_and(|e| e == "yaml" || e == "yml"))
        .collect()
}

#[tokio::test]
async fn the_examples_of_the_go_operator_are_valid_are_rendered_and_are_stored() {
    let cluster = ControlPlane::shared().await;
    cluster.install_crds().await;
    let namespace = cluster.namespace("released").await;
    let folder = module().join("examples");
    let (mut others, mut kinds, mut jobs) = (Vec::new(), BTreeSet::new(), 0);
    for path in below(&folder) {
        let name = path.strip_prefix(&folder).unwrap().to_str().unwrap();
        let file = path.to_str().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let mut documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        if !documents.iter().any(|d| d["apiVersion"] == "kubeflow.org/v1") {
            others.push(name.to_owned());
            continue;
        }
        for document in &mut documents {
            kinds.insert(document["kind"].as_str().unwrap().to_owned());
            // These namespaces do not exist.
            document["metadata"].as_object_mut().unwrap().remove("namespace");
        }
        let texts: Vec<_> = documents.iter().map(Value::to_string).collect();
        let told = api::create(cluster, &namespace, &texts.join("\n---\n"), &["--dry-run=server"]).await;
        let (validated, rendered) = (run(&["validate", file]), run(&["render", file]));
        if name == REFUSED.0 {
            assert!(told.iter().any(|line| line == REFUSED.1), "{told:#?}");
            assert_eq!((validated.code, rendered.code), (Some(1), Some(2)), "{name}");
            continue;
        }
        assert!(told.is_empty(), "{name}: {told:#?}");
        let counts = format!("{} valid job", documents.len());
        assert!(
            validated.code == Some(0) && validated.stdout.contains(&counts),
            "{name}: {validated:?}"
        );
        assert!(
            rendered.code == Some(0) && rendered.stdout.contains("kind: Pod\n"),
            "{name}: {rendered:?}"
        );
        jobs += documents.len();
    }
    assert_eq!(others, OTHERS);
    let all = [
        "MPIJob",
        "MXJob",
        "PaddleJob",
        "PyTorchJob",
        "TFJob",
        "XGBoostJob",
    ];
    assert_eq!(kinds, BTreeSet::from(all.map(str::to_owned)));
    assert!(jobs >= 27, "{jobs} jobs");
}
