//! The controllers of the controller manager.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, ResourceQuota};
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;
use training_job_testbed::cluster::{ControlPlane, wait};

use super::objects::{config_map, pod};

#[tokio::test]
async fn children_go_with_their_owner() {
    let cluster = ControlPlane::shared().await;
    let namespace = cluster.namespace("garbage").await;
    let owner = config_map(cluster.client(), &namespace, "owner", None).await;
    config_map(cluster.client(), &namespace, "child", Some(&owner)).await;
    config_map(cluster.client(), &namespace, "stranger", None).await;
    let api: Api<ConfigMap> = Api::namespaced(cluster.client(), &namespace);
    api.delete("owner", &DeleteParams::default()).await.unwrap();
    cluster
        .wait::<ConfigMap>(&namespace, "child", |found| found.is_none())
        .await;
    assert!(api.get_opt("stranger").await.unwrap().is_some());
}

/// The kinds of `crds/` are covered as well.
#[tokio::test]
async fn children_go_with_their_job() {
    let cluster = ControlPlane::shared().await;
    cluster.install_crds().await;
    let namespace = cluster.namespace("garbage-job").await;
    let run = async |arguments: &[&str]| {
        let arguments = [arguments, &["--namespace", &namespace]].concat();
        cluster.kubectl(&arguments).await.success()
    };
    run(&["apply", "-f", "examples/mxnet/train.yaml"]).await;
    let uid = run(&["get", "mxjob", "spirals", "-o", "jsonpath={.metadata.uid}"]).await;
    let mut child = pod("child");
    let owner = json!([{"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "name": "spirals", "uid": uid}]);
    child.metadata.owner_references = serde_json::from_value(owner).unwrap();
    let pods: Api<Pod> = Api::namespaced(cluster.client(), &namespace);
    pods.create(&PostParams::default(), &child).await.unwrap();
    run(&["delete", "mxjob", "spirals"]).await;
    cluster
        .wait::<Pod>(&namespace, "child", |found| found.is_none())
        .await;
}

#[tokio::test]
async fn a_namespace_is_emptied_and_goes() {
    let cluster = ControlPlane::shared().await;
    let namespace = cluster.namespace("leaving").await;
    config_map(cluster.client(), &namespace, "content", None).await;
    let namespaces: Api<Namespace> = Api::all(cluster.client());
    namespaces
        .delete(&namespace, &DeleteParams::default())
        .await
        .unwrap();
    wait(namespaces, &namespace, |found| found.is_none()).await;
}

#[tokio::test]
async fn a_quota_is_counted_and_kept() {
    let cluster = ControlPlane::shared().await;
    let namespace = cluster.namespace("quota").await;
    let quota = json!({"metadata": {"name": "quota"}, "spec": {"hard": {"pods": "1"}}});
    let quota: ResourceQuota = serde_json::from_value(quota).unwrap();
    let quotas: Api<ResourceQuota> = Api::namespaced(cluster.client(), &namespace);
    quotas.create(&PostParams::default(), &quota).await.unwrap();
    let used = |quota: &ResourceQuota| Some(quota.status.as_ref()?.used.as_ref()?.get("pods")?.0.clone());
    let is = |n: &'static str| move |q: Option<&ResourceQuota>| q.and_then(used).as_deref() == Some(n);
    cluster.wait(&namespace, "quota", is("0")).await;
    let pods: Api<Pod> = Api::namespaced(cluster.client(), &namespace);
    pods.create(&PostParams::default(), &pod("one")).await.unwrap();
    let refused = pods
        .create(&PostParams::default(), &pod("two"))
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("exceeded quota"), "{refused}");
    pods.delete("one", &DeleteParams::default()).await.unwrap();
    cluster.wait(&namespace, "quota", is("0")).await;
    pods.create(&PostParams::default(), &pod("two")).await.unwrap();
}
