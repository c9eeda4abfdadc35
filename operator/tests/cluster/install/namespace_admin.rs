//! An administrator of a single namespace installs the operator there.

use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::Api;
use serde_json::json;
use training_job_testbed::cluster::{ControlPlane, wait};
use training_operator_testing::manifests::{build, kustomization};

use super::life::create;

/// With each set of components, because an account can only grant its own permissions.
#[tokio::test]
async fn an_admin_of_a_namespace_installs_the_operator_there() {
    let cluster = ControlPlane::shared().await;
    cluster.install_crds().await;
    let crds = training_job_testbed::cluster::repository().join("crds");
    let apply = [
        "apply",
        "--server-side",
        "--force-conflicts",
        "--kustomize",
        crds.to_str().unwrap(),
    ];
    cluster.kubectl(&apply).await.success();
    let has_jobs = |role: Option<&ClusterRole>| {
        let rules = role.and_then(|role| role.rules.as_ref()).into_iter().flatten();
        let mut groups = rules.filter_map(|rule| rule.api_groups.as_ref()).flatten();
        groups.any(|group| group == "kubeflow.org")
    };
    wait(Api::<ClusterRole>::all(cluster.client()), "admin", has_jobs).await;

    let all = [
        &[][..],
        &["mpi"],
        &["mlkube"],
        &["volcano"],
        &["mpi", "coscheduling", "network-policy"],
    ];
    for (n, components) in all.into_iter().enumerate() {
        let namespace = cluster.namespace(&format!("alice-{n}")).await;
        let alice = [
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "alice"}}),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "alice"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
                "subjects": [{"kind": "ServiceAccount", "name": "alice", "namespace": namespace}],
            }),
        ];
        create(cluster, &namespace, &alice).await;
        cluster
            .kubeconfig_once_allowed(&namespace, "alice", "create", "mxjobs.kubeflow.org")
            .await;

        let directory = kustomization(cluster, "namespaced", components, &namespace);
        let alice = format!("--as=system:serviceaccount:{namespace}:alice");
        let apply = ["apply", &alice, "--kustomize", directory.to_str().unwrap()];
        let applied = cluster.kubectl(&apply).await.success();
        let objects = build(cluster, "namespaced", components, &namespace).await;
        assert_eq!(
            applied.lines().count(),
            objects.len(),
            "{components:?}: {applied}"
        );

        // The permissions are limited to the namespace.
        let elsewhere = ["apply", &alice, "--dry-run=server", "--kustomize"];
        let directory = kustomization(cluster, "namespaced", components, "default");
        let refused = cluster
            .kubectl(&[&elsewhere[..], &[directory.to_str().unwrap()]].concat())
            .await;
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.stderr.contains("orbidden"), "{}", refused.stderr);
    }
}
