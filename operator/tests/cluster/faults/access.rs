//! Changes of credentials and permissions: 401 and 403.

use std::fs;

use k8s_openapi::api::rbac::v1::Role;
use kube::api::Api;
use training_job::api::ConditionType;
use training_job_testbed::cluster::{ControlPlane, RecordedCall};
use training_operator_testing::program::run;

use crate::rig::jobs::job;
use crate::rig::stage::{Stage, namespace_with_account};

/// Runs kubectl, which must succeed.
async fn kubectl(cluster: &ControlPlane, arguments: &[&str]) {
    cluster.kubectl(arguments).await.success();
}

/// Returns the shared control plane, and a namespace in it with an operator's service account.
async fn with_account(name: &str) -> (&'static ControlPlane, String) {
    let cluster = ControlPlane::shared().await;
    cluster.install_crds().await;
    (cluster, namespace_with_account(cluster, name).await)
}

#[tokio::test]
async fn a_token_that_is_worth_nothing_any_more_is_read_anew() {
    let (cluster, namespace) = with_account("token").await;
    let first = cluster
        .kubeconfig_for_service_account(&namespace, "operator")
        .await;
    let token = cluster.directory().join("token.token");
    fs::write(&token, cluster.token_of(&first)).unwrap();
    let kubeconfig = cluster.kubeconfig_with_token_file(&first, &token);
    let client = cluster.client_of(&first).await;
    cluster
        .wait_until_allowed(&client, &namespace, "create", "pods")
        .await;
    let stage = Stage::within(cluster, &namespace, &kubeconfig).await;
    let operator = stage.operator();
    stage.create(job("before", 1)).await;
    let run = stage.until_all_run("before", 1).await;

    // The tokens of a deleted account stay invalid, even if a new account has the same name.
    kubectl(
        cluster,
        &["delete", "serviceaccount", "operator", "--namespace", &namespace],
    )
    .await;
    kubectl(
        cluster,
        &["create", "serviceaccount", "operator", "--namespace", &namespace],
    )
    .await;
    let old = cluster.client_of(&first).await;
    let old: Api<Role> = Api::namespaced(old, &namespace);
    // The API server caches a token for some seconds.
    while !matches!(old.get("any").await, Err(kube::Error::Api(status)) if status.code == 401) {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    stage.create(job("after", 1)).await;
    let refused = |call: &RecordedCall| call.code == Some(401);
    stage.proxy.until_call("a refusal with 401", refused).await;
    let second = cluster
        .kubeconfig_for_service_account(&namespace, "operator")
        .await;
    fs::write(&token, cluster.token_of(&second)).unwrap();
    // The client reads the file again after a minute.
    let running = stage.until("after", ConditionType::Running);
    let touched = async {
        for mark in 0.. {
            stage.touch("after", &mark.to_string()).await;
            tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        }
    };
    tokio::select! { _ = running => {}, () = touched => {} }
    assert_eq!(stage.pods_of("before").await, run);
    stage.succeed("before", 1).await;
    stage.expect_no_harm();
    operator.expect_well();
}

#[tokio::test]
async fn an_operator_without_a_role_reports_the_missing_permissions_once_and_works_when_it_has_them() {
    let (cluster, namespace) = with_account("no-role").await;
    kubectl(
        cluster,
        &["delete", "rolebinding", "operator", "--namespace", &namespace],
    )
    .await;
    let kubeconfig = cluster
        .kubeconfig_for_service_account(&namespace, "operator")
        .await;
    let stage = Stage::within(cluster, &namespace, &kubeconfig).await;
    let operator = stage.operator();
    operator.0.wait_for_line("permissions are missing").await;
    // Each watch has been retried.
    operator
        .wait_for_metric("training_operator_watch_failures_total{resource=\"pods\"}", 3.0)
        .await;
    let problems: Vec<_> = operator
        .log()
        .into_iter()
        .filter(|line| line["level"] != "INFO")
        .collect();
    let [line] = &problems[..] else {
        panic!("{problems:#?}");
    };
    assert_eq!(line["verbs"], "list,watch");
    let resources = line["resources"].as_str().unwrap_or_default();
    assert!(
        resources.contains("mxjobs.kubeflow.org,") && resources.contains(",pods,"),
        "{resources}"
    );
    let problem = line["problem"].as_str().unwrap_or_default();
    assert!(
        problem.contains("is forbidden: User") && !problem.contains("Status {"),
        "{problem}"
    );
    // The command is run as it is printed.
    let message = line["message"].as_str().unwrap_or_default();
    let (_, command) = message.split_once("; run: training-operator ").unwrap();
    let (print, apply) = command.split_once(" | kubectl ").unwrap();
    assert!(
        print.starts_with(&format!(
            "rbac --namespace {namespace} --service-account operator --kind MXJob"
        )),
        "{print}"
    );
    let printed = run(&print.split(' ').collect::<Vec<_>>());
    assert_eq!(printed.code, Some(0), "{printed:?}");
    let apply: Vec<&str> = apply.split(' ').collect();
    cluster
        .kubectl_with_input(&apply, &printed.stdout)
        .await
        .success();
    operator.0.wait_for_line("all permissions are there now").await;
    stage.create(job("a", 1)).await;
    stage.until_all_run("a", 1).await;
    operator.expect_well();
}

/// The role of the manifests has no rules for MPIJobs, and for the roles that their launchers need.
#[tokio::test]
async fn a_kind_without_its_permissions_stops_no_other() {
    let (cluster, namespace) = with_account("no-rights-for-mpi").await;
    let kubeconfig = cluster
        .kubeconfig_for_service_account(&namespace, "operator")
        .await;
    let stage = Stage::within(cluster, &namespace, &kubeconfig).await;
    let operator = stage.operator_with(&["--enable-scheme=MXJob,MPIJob"]);
    let line = operator.0.wait_for_line("permissions are missing").await;
    assert!(
        line.contains("mpijobs.kubeflow.org") && line.contains("rolebindings"),
        "{line}"
    );
    stage.create(job("a", 1)).await;
    stage.until_all_run("a", 1).await;
    operator.ready().await;
    operator.expect_well();
}
