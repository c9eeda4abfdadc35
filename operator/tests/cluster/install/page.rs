//! The commands of docs/users/install.md that install and remove the operator with kustomize, as the page has them.

use std::fs;

use training_job_testbed::cluster::{ControlPlane, Options, repository};

/// Returns the commands for kubectl in the part of the page between two texts.
fn commands(from: &str, to: &str) -> Vec<Vec<String>> {
    let page = fs::read_to_string(repository().join("docs/users/install.md")).unwrap();
    let (_, part) = page.split_once(from).unwrap();
    let (part, _) = part.split_once(to).unwrap();
    let lines = part
        .lines()
        .filter_map(|line| line.trim().strip_prefix("kubectl "));
    lines
        .map(|line| line.split_whitespace().map(str::to_owned).collect())
        .collect()
}

async fn run(cluster: &ControlPlane, commands: &[Vec<String>]) {
    assert!(!commands.is_empty());
    for command in commands {
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        cluster.kubectl(&command).await.success();
    }
}

/// Returns the objects of the operator, beside its definitions.
async fn installed(cluster: &ControlPlane) -> String {
    let kinds = "deployment,poddisruptionbudget,networkpolicy,service,serviceaccount,role,rolebinding,clusterrole,clusterrolebinding";
    let get = ["get", kinds, "--all-namespaces", "--output=name"];
    let all = cluster.kubectl(&get).await.success();
    let own = all.lines().filter(|name| name.contains("/training-operator"));
    own.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_removal_keeps_the_namespace_the_definitions_and_the_jobs() {
    let cluster = &ControlPlane::start(Options::default()).await;
    let install = commands("`namespaced` |", "`--force-conflicts` makes");
    run(cluster, &install).await;
    cluster.served("mxjobs.kubeflow.org").await;
    let policy = [
        "apply",
        "--namespace",
        "kubeflow",
        "-f",
        "manifests/network-policy/network-policy.yaml",
    ];
    cluster.kubectl(&policy).await.success();
    for object in ["configmap others", "serviceaccount others"] {
        let create = [
            &["create", "--namespace", "kubeflow"][..],
            &object.split(' ').collect::<Vec<_>>(),
        ]
        .concat();
        cluster.kubectl(&create).await.success();
    }
    let job = [
        "create",
        "--namespace",
        "kubeflow",
        "-f",
        "examples/mxnet/train.yaml",
    ];
    cluster.kubectl(&job).await.success();
    assert!(
        installed(cluster)
            .await
            .contains("deployment.apps/training-operator")
    );

    run(
        cluster,
        &commands("With kustomize, delete the objects", "**`kubectl delete -k`"),
    )
    .await;
    assert_eq!(installed(cluster).await, "");
    let left = [
        "get",
        "configmap/others",
        "serviceaccount/others",
        "--namespace",
        "kubeflow",
        "--output=name",
    ];
    let left = cluster.kubectl(&left).await.success();
    let jobs = ["get", "mxjob", "--namespace", "kubeflow", "--output=name"];
    let left = left + &cluster.kubectl(&jobs).await.success();
    for object in ["mxjob.kubeflow.org/", "configmap/others", "serviceaccount/others"] {
        assert!(left.contains(object), "{left}");
    }
    run(cluster, &install).await;
}

/// As Argo CD does: its fields stay where these manifests set none.
#[tokio::test]
async fn the_operator_starts_in_the_place_of_one_that_was_installed_by_server_side_apply() {
    let cluster = &ControlPlane::start(Options::default()).await;
    let go = r#"
        {apiVersion: apps/v1, kind: Deployment, metadata: {name: training-operator, namespace: kubeflow}, spec: {replicas: 0,
          selector: {matchLabels: {control-plane: kubeflow-training-operator}},
          template: {metadata: {labels: {control-plane: kubeflow-training-operator}}, spec: {
            containers: [{name: training-operator, image: kubeflow/training-operator, command: [/manager],
              volumeMounts: [{name: cert, mountPath: /tmp/k8s-webhook-server/serving-certs, readOnly: true}]}],
            volumes: [{name: cert, secret: {secretName: training-operator-webhook-cert}}]}}}}"#;
    cluster
        .kubectl(&["create", "namespace", "kubeflow"])
        .await
        .success();
    let apply = [
        "apply",
        "--server-side",
        "--field-manager=argocd-controller",
        "-f",
        "-",
    ];
    cluster.kubectl_with_input(&apply, go).await.success();
    let install = commands("`namespaced` |", "`--force-conflicts` makes");
    let container = async |field: &str| {
        let path = format!("jsonpath={{.spec.template.spec.{field}}}");
        let get = [
            "get",
            "deployment",
            "training-operator",
            "--namespace=kubeflow",
            "--output",
            &path,
        ];
        cluster.kubectl(&get).await.success()
    };
    run(cluster, &install).await;
    assert_eq!(
        container("containers[0].command").await,
        r#"["/training-operator"]"#
    );
    assert_eq!(container("volumes[*].name").await, "cert", "as the page says");

    run(
        cluster,
        &commands("1. Delete its Deployment: `", "`. Jobs continue"),
    )
    .await;
    run(cluster, &install).await;
    assert_eq!(container("volumes[*].name").await, "");
}
