//! Each overlay applies as it is, and the operator's pods may run where nothing is allowed.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use training_job_testbed::cluster::{ControlPlane, Options, Program, repository};
use training_operator_testing::manifests::{build, find, kustomization, permissions};

async fn apply(cluster: &ControlPlane, path: &Path) -> String {
    cluster
        .kubectl(&["apply", "--kustomize", path.to_str().unwrap()])
        .await
        .success()
}

/// Client-side, as most people do it: what was applied is kept in an annotation, which has its limit.
#[tokio::test]
async fn every_overlay_applies_and_applies_again() {
    // Other tests add definitions to the shared control plane.
    let cluster = &ControlPlane::start(Options::default()).await;
    let overlays = ["standalone", "kubeflow", "namespaced"];
    let overlays = overlays.map(|name| repository().join("manifests/overlays").join(name));
    let with_mpi = kustomization(cluster, "standalone", &["mpi"], "kubeflow");
    for overlay in overlays.iter().chain([&with_mpi]) {
        let first = apply(cluster, overlay).await;
        assert!(first.contains("deployment.apps/training-operator"), "{first}");
        let written = definitions(cluster).await;
        let again = apply(cluster, overlay).await;
        let overlay = overlay.display();
        // kubectl sends what a budget selects anew each time, and the server aggregates the admin's role.
        let known = ["poddisruptionbudget.policy/", "/kubeflow-training-admin "];
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
    let objects = build(cluster, "namespaced", &[], "team").await;
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
        let objects = build(cluster, overlay, &[], "team").await;
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

/// The permissions that MPIJobs need are opt-in.
#[tokio::test]
async fn the_mpi_component_adds_only_the_permissions_of_mpijobs() {
    let cluster = ControlPlane::shared().await;
    for (overlay, kind) in [("standalone", "ClusterRole"), ("namespaced", "Role")] {
        let [without, with] =
            [&[][..], &["mpi"]].map(|components| build(cluster, overlay, components, "team"));
        let (without, with) = (without.await, with.await);
        let granted = |objects: &[Value]| permissions(find(objects, kind, "training-operator"));
        let (before, after) = (granted(&without), granted(&with));
        assert!(before.is_subset(&after));
        let added: BTreeSet<String> = after.difference(&before).map(|p| p.resource.clone()).collect();
        let expected = [
            "mpijobs",
            "mpijobs/finalizers",
            "mpijobs/status",
            "pods/exec",
            "rolebindings",
            "roles",
            "serviceaccounts",
        ];
        assert!(added.iter().eq(&expected), "{overlay}: {added:?}");
        let verbs: BTreeSet<&str> = after.iter().map(|p| &*p.verb).collect();
        let plain = ["create", "delete", "get", "list", "patch", "update", "watch"];
        assert!(verbs.iter().eq(&plain), "{overlay}: {verbs:?}");
        // A definition that is there may be the mpi-operator's.
        let defines = |object: &Value| object["metadata"]["name"] == "mpijobs.kubeflow.org";
        assert!(!with.iter().any(defines), "{overlay}");
    }
}

/// The kinds of 2017 are opt-in.
#[tokio::test]
async fn a_component_adds_the_kinds_of_2017_and_nothing_else() {
    let cluster = ControlPlane::shared().await;
    for (overlay, kind) in [("standalone", "ClusterRole"), ("namespaced", "Role")] {
        let [without, with] =
            [&[][..], &["mlkube"]].map(|components| build(cluster, overlay, components, "team"));
        let (without, with) = (without.await, with.await);
        let granted = |objects: &[Value]| permissions(find(objects, kind, "training-operator"));
        let (before, after) = (granted(&without), granted(&with));
        assert!(before.is_subset(&after));
        let is_old = |group: &str| group.ends_with("mlkube.io");
        assert!(!before.iter().any(|p| is_old(&p.group)), "{overlay}: {before:?}");
        assert!(
            after.difference(&before).all(|p| is_old(&p.group)),
            "{overlay}: {after:?}"
        );
        let defines = |object: &Value| {
            object["kind"] == "CustomResourceDefinition" && is_old(object["spec"]["group"].as_str().unwrap())
        };
        assert!(!with.iter().any(defines), "{overlay}");
    }
}

/// No kind is forgotten when one is added.
#[tokio::test]
async fn all_kinds_run_and_some_with_their_component() {
    let cluster = ControlPlane::shared().await;
    let all = training_operator(cluster, &["--enable-scheme=no-such-kind"]).await;
    let all = all.split("must be one of ").nth(1).unwrap();
    let all: BTreeSet<&str> = all
        .lines()
        .next()
        .unwrap()
        .trim_end_matches('"')
        .split(", ")
        .collect();
    for (components, missing) in [
        (&[][..], &["MPIJob", "MxJob", "TfJob"][..]),
        (&["mpi"], &["MxJob", "TfJob"]),
        (&["mpi", "mlkube"], &[]),
    ] {
        let objects = build(cluster, "standalone", components, "team").await;
        let pod = &find(&objects, "Deployment", "training-operator")["spec"]["template"]["spec"];
        let arguments: Vec<String> = serde_json::from_value(pod["containers"][0]["args"].clone()).unwrap();
        let enabled = arguments
            .iter()
            .filter_map(|flag| flag.strip_prefix("--enable-scheme="));
        let enabled: BTreeSet<&str> = enabled.flat_map(|kinds| kinds.split(',')).collect();
        let off: Vec<_> = all.difference(&enabled).copied().collect();
        assert_eq!(off, missing);
        assert!(enabled.is_subset(&all), "{enabled:?}");
    }
}

/// Returns the error of `training-operator run` when it cannot run.
async fn training_operator(cluster: &ControlPlane, flags: &[&str]) -> String {
    let program = Program::new(env!("CARGO_BIN_EXE_training-operator"));
    let ended = cluster.spawn(program.args(["run"]).args(flags));
    assert_eq!(ended.exit_code().await, 2, "{}", ended.text());
    ended.text()
}

/// A Deployment's selector cannot be changed, so labels for people and dashboards are not in it.
#[tokio::test]
async fn the_deployment_has_common_labels_and_the_image_of_this_version() {
    let cluster = ControlPlane::shared().await;
    let objects = build(cluster, "standalone", &[], "team").await;
    let deployment = find(&objects, "Deployment", "training-operator");
    let template = &deployment["spec"]["template"];
    for labels in [&deployment["metadata"]["labels"], &template["metadata"]["labels"]] {
        assert_eq!(labels["app.kubernetes.io/name"], "training-operator");
        assert_eq!(labels["app.kubernetes.io/version"], env!("CARGO_PKG_VERSION"));
    }
    let selector = json!({"matchLabels": {"control-plane": "kubeflow-training-operator"}});
    assert_eq!(deployment["spec"]["selector"], selector);
    let image = concat!(
        "ghcr.io/training-job/training-operator:",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(template["spec"]["containers"][0]["image"], image);
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
    let objects = build(cluster, "standalone", &[], &namespace).await;
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
