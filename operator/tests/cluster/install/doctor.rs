//! The permissions of `training-operator doctor`.

use std::process::Command;

use training_job_testbed::cluster::{Audit, ControlPlane, Options, repository};

/// Returns the output of doctor as the service account `reader`, with its exit code.
async fn doctor(cluster: &ControlPlane, namespace: &str) -> (String, Option<i32>) {
    let kubeconfig = cluster.kubeconfig_for_service_account(namespace, "reader").await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_training-operator"));
    command.arg("doctor").env("KUBECONFIG", kubeconfig);
    let output = tokio::task::spawn_blocking(move || command.output())
        .await
        .unwrap()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8(text).unwrap(), output.status.code())
}

#[tokio::test]
async fn doctor_needs_the_permissions_of_its_role_and_names_it_without_them() {
    let cluster = &ControlPlane::start(Options {
        audit: Some(Audit::All),
        ..Options::default()
    })
    .await;
    cluster.install_crds().await;
    let namespace = cluster.namespace("doctor").await;
    let in_namespace = ["--namespace", &namespace];
    cluster
        .kubectl(&[&["create", "serviceaccount", "reader"][..], &in_namespace].concat())
        .await
        .success();
    let (text, _) = doctor(cluster, &namespace).await;
    assert!(text.contains("manifests/doctor"), "{text}");

    // It checks the permissions of an installed operator.
    for path in ["manifests/doctor", "manifests/overlays/standalone"] {
        let path = repository().join(path);
        cluster
            .kubectl(&["apply", "--kustomize", path.to_str().unwrap()])
            .await
            .success();
    }
    let account = format!("--serviceaccount={namespace}:reader");
    let bind = [
        "create",
        "clusterrolebinding",
        "doctor",
        "--clusterrole=training-operator-doctor",
        &account,
    ];
    cluster.kubectl(&bind).await.success();
    let user = format!("system:serviceaccount:{namespace}:reader");
    let denied = || {
        cluster
            .audit()
            .into_iter()
            .filter(|call| call.user == user && call.code == 403)
            .count()
    };
    let before = denied();
    assert!(before > 0);
    let (text, code) = doctor(cluster, &namespace).await;
    // Nothing runs the Deployment here.
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("0 of 2 pods are ready"), "{text}");
    assert_eq!(denied(), before, "{text}");
    assert!(!text.contains("manifests/doctor"), "{text}");
    let mut calls = cluster.audit().into_iter().filter(|call| call.user == user);
    assert!(
        calls.any(|call| call.resource == "subjectaccessreviews"),
        "{text}"
    );
}
