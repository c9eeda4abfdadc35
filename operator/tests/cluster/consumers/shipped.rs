//! The files in `manifests/integrations`, installed as users install them.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use training_job_testbed::cluster::{ControlPlane, repository};
use training_operator_testing::recordings::kinds::KINDS;

const CHECKS: &str = "manifests/integrations/argo-cd";

/// Fails unless a ConfigMap has one health check for all kinds and keeps its other entries.
fn expect_checks(config: &Value) {
    let prefix = "resource.customizations.health.";
    let data = config["data"].as_object().unwrap();
    let checked: BTreeSet<_> = data.keys().filter_map(|key| key.strip_prefix(prefix)).collect();
    let kinds: Vec<_> = KINDS
        .iter()
        .map(|kind| format!("{}_{}", kind.version.split('/').next().unwrap(), kind.name))
        .collect();
    assert_eq!(checked, kinds.iter().map(String::as_str).collect());
    let scripts: BTreeSet<_> = checked
        .iter()
        .map(|kind| data[&format!("{prefix}{kind}")].as_str().unwrap())
        .collect();
    assert_eq!(scripts.len(), 1, "{scripts:?}");
    assert_eq!(data["url"], "https://argocd.example.com", "what was there before");
}

#[tokio::test]
async fn health_checks_are_added_to_the_configuration_of_argo_cd() {
    let plane = ControlPlane::shared().await;
    let namespace = plane.namespace("argocd").await;
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm"},
        "data": {"url": "https://argocd.example.com"},
    });
    let within = ["--namespace", &namespace];
    plane.create(&namespace, &config).await;
    let file = format!("{CHECKS}/argocd-cm.yaml");
    let patch = [
        "patch",
        "configmap",
        "argocd-cm",
        "--patch-file",
        &file,
        "--output=json",
    ];
    let patched = plane.kubectl(&[&within[..], &patch].concat()).await.success();
    expect_checks(&serde_json::from_str(&patched).unwrap());

    // As a component of a kustomization that contains the ConfigMap.
    let folder = plane.directory().join("argocd");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("argocd-cm.yaml"), config.to_string()).unwrap();
    let up = "../".repeat(folder.components().count() - 1);
    let component = format!("{up}{}", repository().join(CHECKS).display()).replace("//", "/");
    let kustomization = json!({"resources": ["argocd-cm.yaml"], "components": [component]});
    fs::write(folder.join("kustomization.yaml"), kustomization.to_string()).unwrap();
    let built = plane.kubectl(&["kustomize", folder.to_str().unwrap()]).await;
    expect_checks(&serde_saphyr::from_str(&built.success()).unwrap());
}

#[test]
fn kube_state_metrics_has_each_kind_by_its_resource() {
    let file = repository().join("manifests/integrations/kube-state-metrics/custom-resource-state.yaml");
    let config: Value = serde_saphyr::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let resources = config["spec"]["resources"].as_array().unwrap();
    let found: BTreeSet<_> = resources
        .iter()
        .map(|resource| {
            let of = &resource["groupVersionKind"];
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let version = format!("{}/{}", text(&of["group"]), text(&of["version"]));
            (version, text(&of["kind"]), text(&resource["resourcePlural"]))
        })
        .collect();
    let kinds: BTreeSet<_> = KINDS
        .iter()
        .map(|kind| {
            let plural = format!("{}s", kind.name.to_lowercase());
            let group = kind.version.split('/').next().unwrap();
            let folder = match group {
                "kubeflow.org" if kind.name == "MPIJob" => "crds/mpi",
                "kubeflow.org" => "crds",
                _ => "crds/mlkube",
            };
            let definition = format!("{folder}/{group}_{plural}.yaml");
            assert!(repository().join(&definition).is_file(), "{definition}");
            (kind.version.to_owned(), kind.name.to_owned(), plural)
        })
        .collect();
    assert_eq!(found, kinds);
    assert_eq!(resources.len(), kinds.len());
}
