//! Each overlay applies as it is, and the operator's pods may run where nothing is allowed.

use serde_json::{Value, json};
use training_job_testing::cluster::{ControlPlane, repository};

use crate::manifests::{build, find, permissions};

async fn apply(cluster: &ControlPlane, overlay: &str) -> String {
    let path = repository().join("manifests/overlays").join(overlay);
    cluster
        .kubectl(&["apply", "--kustomize", path.to_str().unwrap()])
        .await
        .success()
}

/// Client-side, as most people do it: what was applied is kept in an annotation, which has its limit.
#[tokio::test]
async fn every_overlay_applies_and_applies_again() {
    let cluster = ControlPlane::shared().await;
    for overlay in ["standalone", "kubeflow", "namespaced"] {
        let first = apply(cluster, overlay).await;
        assert!(first.contains("deployment.apps/training-operator"), "{first}");
        let written = definitions(cluster).await;
        let again = apply(cluster, overlay).await;
        // kubectl sends what a budget selects anew each time, and of a definition the one field that the server stores by
        // leaving it out; and the server aggregates the admin's role.
        let known = [
            "poddisruptionbudget.policy/",
            "customresourcedefinition.apiextensions.k8s.io/",
            "/kubeflow-training-admin ",
        ];
        let changed =
            |line: &&str| !line.ends_with(" unchanged") && !known.iter().any(|known| line.contains(known));
        assert_eq!(again.lines().find(changed), None, "{overlay}: {again}");
        assert_eq!(definitions(cluster).await, written, "{overlay}");
    }
}

/// The definitions, and how often each was changed: their statuses come when the server has seen them.
async fn definitions(cluster: &ControlPlane) -> String {
    let columns = "custom-columns=NAME:.metadata.name,CHANGE:.metadata.generation";
    let get = ["get", "customresourcedefinitions", "-o", columns];
    cluster.kubectl(&get).await.success()
}

#[tokio::test]
async fn a_namespace_needs_no_cluster_wide_permission() {
    let cluster = ControlPlane::shared().await;
    let objects = build(cluster, "namespaced", "team").await;
    for object in &objects {
        let kind = object["kind"].as_str().unwrap();
        assert!(
            !kind.contains("Cluster") && kind != "CustomResourceDefinition",
            "{object}"
        );
        assert_eq!(object["metadata"]["namespace"], "team", "{object}");
    }
}

#[tokio::test]
async fn roles_are_plain() {
    let cluster = ControlPlane::shared().await;
    for (overlay, kind) in [("standalone", "ClusterRole"), ("namespaced", "Role")] {
        let objects = build(cluster, overlay, "team").await;
        let all = permissions(find(&objects, kind, "training-operator"));
        assert!(!all.is_empty());
        for permission in all {
            let what = format!("{permission:?}");
            for never in ["*", "secrets", "exec", "escalate", "bind", "impersonate", "roles"] {
                assert!(!what.contains(never), "{overlay}: {what}");
            }
        }
    }
}

#[tokio::test]
async fn its_pods_may_run_in_a_restricted_namespace() {
    let cluster = ControlPlane::shared().await;
    let namespace = cluster.namespace("restricted").await;
    let label = "pod-security.kubernetes.io/enforce=restricted";
    cluster
        .kubectl(&["label", "namespace", &namespace, label])
        .await
        .success();
    let objects = build(cluster, "standalone", &namespace).await;
    let template = &find(&objects, "Deployment", "training-operator")["spec"]["template"];
    let mut pod: Value = template.clone();
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!("operator");
    let create = ["create", "--namespace", &namespace, "--filename", "-"];
    let made = cluster.kubectl_with_input(&create, &pod.to_string()).await;
    made.success();

    // The test would see it if it were otherwise.
    pod["metadata"]["name"] = json!("careless");
    pod["spec"]["containers"][0]["securityContext"] = json!({});
    let refused = cluster.kubectl_with_input(&create, &pod.to_string()).await;
    assert!(
        refused.stderr.contains("violates PodSecurity"),
        "{}",
        refused.stderr
    );
}
