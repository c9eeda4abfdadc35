//! An installation by kustomize becomes a release.

use serde_json::Value;
use training_operator_testing::manifests::kustomization;

use crate::helm::{Helm, RELEASE, chart};
use crate::release::{Cluster, NAMESPACE, stop};

/// The flags of docs/users/install.md.
fn flags(helm: Helm) -> &'static [&'static str] {
    match helm {
        Helm::Three => &["--take-ownership"],
        Helm::Four => &["--take-ownership", "--force-conflicts"],
    }
}

async fn becomes_a_release(helm: Helm) {
    let cluster = Cluster::new(helm).await;
    let folder = kustomization(&cluster.plane, "standalone", &[], NAMESPACE);
    let apply = [
        "apply",
        "--server-side",
        "--force-conflicts",
        "-k",
        folder.to_str().unwrap(),
    ];
    cluster.plane.kubectl(&apply).await.success();
    for name in cluster.definitions().await.keys() {
        cluster.plane.served(name).await;
    }
    let operator = cluster.operator().await;
    let team = cluster.plane.namespace("team").await;
    let nodes = cluster.plane.nodes(&team).await;
    cluster.create(&team, "running").await;
    cluster.have(&team, "Running", 1).await;
    let (running, before) = (cluster.versions(&team).await, identities(&cluster).await);

    let refused = cluster.install(&chart(), &[]).await;
    assert_ne!(refused.code, 0);
    assert!(
        refused.stderr.contains("invalid ownership metadata"),
        "{}",
        refused.stderr
    );

    cluster.install(&chart(), flags(helm)).await.success();
    stop(operator).await;
    let operator = cluster.operator().await;
    assert_eq!(identities(&cluster).await, before);
    // Later upgrades need no flag.
    cluster
        .install(&chart(), &["--set", "replicas=3"])
        .await
        .success();
    let deployment = cluster.get(&["deployments", "--namespace", NAMESPACE]).await;
    assert_eq!(deployment.len(), 1);
    assert_eq!(deployment[0]["spec"]["replicas"], 3);
    assert_eq!(cluster.versions(&team).await, running);

    let kubelet = cluster.plane.kubelet(&team).await;
    kubelet.succeeds("running-master-0").await;
    cluster.have(&team, "Succeeded", 1).await;
    cluster.helm(&["uninstall", RELEASE]).await.success();
    cluster.jobs(&team).get("running").await.unwrap();
    assert_eq!(cluster.definitions().await.len(), 6);
    stop(operator).await;
    drop(nodes);
}

/// Returns the identities of the installation's objects.
async fn identities(cluster: &Cluster) -> Vec<String> {
    let kinds = "serviceaccounts,deployments,services,roles,rolebindings,poddisruptionbudgets";
    let mut objects = cluster.get(&[kinds, "--namespace", NAMESPACE]).await;
    objects.extend(cluster.get(&["customresourcedefinitions"]).await);
    let uid = |object: &Value| {
        format!(
            "{} {} {}",
            object["kind"], object["metadata"]["name"], object["metadata"]["uid"]
        )
    };
    objects.iter().map(uid).collect()
}

#[tokio::test]
async fn an_installation_becomes_a_release_of_helm_3() {
    becomes_a_release(Helm::Three).await;
}

#[tokio::test]
async fn an_installation_becomes_a_release_of_helm_4() {
    becomes_a_release(Helm::Four).await;
}

/// The definitions that a release kept belong to it, so a release of another name needs the flag.
#[tokio::test]
async fn a_release_of_another_name_takes_the_kept_definitions() {
    for helm in Helm::ALL {
        let cluster = Cluster::new(helm).await;
        cluster.install(&chart(), &[]).await.success();
        cluster.helm(&["uninstall", RELEASE]).await.success();
        let chart = chart();
        let install = ["install", "other", chart.to_str().unwrap()];
        let refused = cluster.helm(&install).await;
        assert!(
            refused.stderr.contains("invalid ownership metadata"),
            "{}",
            refused.stderr
        );
        cluster
            .helm(&[&install[..], flags(helm)].concat())
            .await
            .success();
        let definitions = cluster.get(&["customresourcedefinitions"]).await;
        for definition in definitions {
            let labels = &definition["metadata"]["labels"];
            assert_eq!(labels["app.kubernetes.io/instance"], "other");
        }
    }
}
