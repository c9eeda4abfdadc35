//! The definitions of `crds/` in the shared cluster.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams};
use training_job_testbed::cluster::ControlPlane;

#[tokio::test]
async fn the_kinds_are_served() {
    let cluster = ControlPlane::shared().await;
    cluster.install_crds().await;
    let namespace = cluster.namespace("install").await;
    let api: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let all = api.list(&ListParams::default().labels("")).await.unwrap();
    for kind in [
        "mxjobs",
        "tfjobs",
        "xgboostjobs",
        "pytorchjobs",
        "jaxjobs",
        "paddlejobs",
    ] {
        let name = format!("{kind}.kubeflow.org");
        assert!(
            all.iter().any(|d| d.metadata.name.as_deref() == Some(&name)),
            "no {name}"
        );
        let listed = cluster.kubectl(&["get", kind, "--namespace", &namespace]).await;
        assert!(listed.stderr.contains("No resources found"), "{listed:?}");
        assert_eq!(listed.success(), "");
    }
}

#[tokio::test]
async fn a_job_goes_in_over_standard_input_and_comes_out() {
    let cluster = ControlPlane::shared().await;
    cluster.install_crds().await;
    let namespace = cluster.namespace("job").await;
    let file = training_job_testbed::cluster::repository().join("examples/mxnet/train.yaml");
    let text = std::fs::read_to_string(file).unwrap();
    let apply = ["apply", "--namespace", &namespace, "-f", "-"];
    cluster.kubectl_with_input(&apply, &text).await.success();
    let get = ["get", "mxjob", "spirals", "--namespace", &namespace, "-o", "name"];
    assert_eq!(
        cluster.kubectl(&get).await.success(),
        "mxjob.kubeflow.org/spirals\n"
    );
    let refused = cluster
        .kubectl(&["get", "mxjob", "nothing", "--namespace", &namespace])
        .await;
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("NotFound"), "{refused:?}");
}
