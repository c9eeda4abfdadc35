//! Upgrade, rollback and removal of a release while 300 jobs run.

use std::collections::BTreeSet;

use futures::{StreamExt, stream};
use kube::ResourceExt;
use training_job_testbed::cluster::wait_for_all;
use training_operator_testing::operator::Operator;

use crate::helm::{Helm, RELEASE, chart};
use crate::release::{Cluster, NAMESPACE, PREVIOUS, previous, stop};

const JOBS: usize = 300;

const CURRENT: &str = env!("CARGO_PKG_VERSION");

/// Waits until a new operator has seen each job.
async fn has_seen_all(operator: &Operator) {
    let reconciles = r#"training_operator_reconcile_seconds_count{framework="pytorch",result="success"}"#;
    operator.wait_for_metric(reconciles, JOBS as f64).await;
}

/// Checks the version of all definitions.
async fn definitions_are(cluster: &Cluster, version: &str) {
    let definitions = cluster.definitions().await;
    assert_eq!(definitions.len(), 6);
    for (name, found) in definitions {
        assert_eq!(found, (version.to_owned(), version == CURRENT), "{name}");
    }
}

async fn lives(helm: Helm) {
    let cluster = Cluster::new(helm).await;
    let before = previous(&cluster.plane);
    cluster.install(&before, &[]).await.success();
    definitions_are(&cluster, PREVIOUS).await;
    let mut operator = cluster.operator().await;

    let team = cluster.plane.namespace("team").await;
    let nodes = cluster.plane.nodes(&team).await;
    let names: Vec<String> = (0..JOBS).map(|n| format!("job-{n}")).collect();
    stream::iter(&names)
        .for_each_concurrent(8, |name| cluster.create(&team, name))
        .await;
    cluster.have(&team, "Running", JOBS).await;
    let running = cluster.versions(&team).await;
    assert_eq!(running.len(), 3 * JOBS);

    // Pods are replaced in a rollout, so each version's operator takes over the jobs.
    cluster.install(&chart(), &[]).await.success();
    definitions_are(&cluster, CURRENT).await;
    stop(operator).await;
    operator = cluster.operator().await;
    has_seen_all(&operator).await;
    assert_eq!(cluster.versions(&team).await, running, "after the upgrade");

    cluster.helm(&["rollback", RELEASE, "1"]).await.success();
    definitions_are(&cluster, PREVIOUS).await;
    stop(operator).await;
    operator = cluster.operator().await;
    has_seen_all(&operator).await;
    assert_eq!(cluster.versions(&team).await, running, "after the rollback");

    cluster.install(&chart(), &[]).await.success();
    stop(operator).await;
    cluster.helm(&["uninstall", RELEASE]).await.success();
    let left =
        "serviceaccounts,deployments,services,roles,rolebindings,poddisruptionbudgets,secrets,configmaps";
    let left = cluster.get(&[left, "--namespace", NAMESPACE]).await;
    assert!(left.is_empty(), "{left:?}");
    let roles = [
        "clusterroles,clusterrolebindings",
        "--selector",
        "app.kubernetes.io/managed-by=Helm",
    ];
    assert!(cluster.get(&roles).await.is_empty());
    definitions_are(&cluster, CURRENT).await;
    assert_eq!(cluster.versions(&team).await, running, "after the removal");

    // The release takes its definitions back, and its operator the jobs.
    cluster.install(&chart(), &[]).await.success();
    operator = cluster.operator().await;
    has_seen_all(&operator).await;
    assert_eq!(cluster.versions(&team).await, running, "after a new installation");
    let kubelet = cluster.plane.kubelet(&team).await;
    let pods = wait_for_all(cluster.pods(&team), "", |all| all.len() == JOBS).await;
    stream::iter(&pods)
        .for_each_concurrent(8, |pod| async { kubelet.succeeds(&pod.name_any()).await })
        .await;
    cluster.have(&team, "Succeeded", JOBS).await;
    stop(operator).await;
    drop(nodes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_of_helm_3_changes_no_running_job() {
    lives(Helm::Three).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_of_helm_4_changes_no_running_job() {
    lives(Helm::Four).await;
}

/// A disabled kind loses its permissions, and keeps its definition and its jobs.
#[tokio::test]
async fn a_disabled_kind_keeps_its_definition() {
    for helm in Helm::ALL {
        let cluster = Cluster::new(helm).await;
        cluster.install(&chart(), &[]).await.success();
        let before: BTreeSet<String> = cluster.definitions().await.into_keys().collect();
        let team = cluster.plane.namespace("team").await;
        cluster.create(&team, "kept").await;
        for enabled in ["false", "true"] {
            let value = format!("kinds.PyTorchJob={enabled}");
            cluster.install(&chart(), &["--set", &value]).await.success();
            assert!(cluster.definitions().await.keys().eq(&before), "{value}");
            cluster.jobs(&team).get("kept").await.unwrap();
        }
    }
}
