//! Edits of valid jobs.

use training_job_testbed::cluster::{ControlPlane, Output};

use super::api;

const JOB: &str = r#"{
    "apiVersion": "kubeflow.org/v1", "kind": "MXJob", "metadata": {"name": "NAME"},
    "spec": {
        "jobMode": "MXTrain", POLICY,
        "mxReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [{"name": "mxnet", "image": "i"}]}}}}
    }
}"#;

/// Edits an MXJob by a merge patch.
async fn merge(cluster: &ControlPlane, namespace: &str, name: &str, patch: &str) -> Output {
    let arguments = [
        "patch",
        "mxjob",
        name,
        "-n",
        namespace,
        "--type=merge",
        "-p",
        patch,
    ];
    cluster.kubectl(&arguments).await
}

/// As under the Go operator. The rule applies to the stand-alone operator's shape as well.
#[tokio::test]
async fn a_queue_once_set_stays_and_all_else_may_change() {
    let cluster = ControlPlane::shared().await;
    cluster.install_crds().await;
    let namespace = cluster.namespace("edits").await;
    let nested = (
        "nested",
        r#""runPolicy": {"schedulingPolicy": {"queue": "a"}}"#,
        r#"{"spec": {"runPolicy": {"schedulingPolicy": EDIT}}}"#,
        "spec.runPolicy.schedulingPolicy.queue: spec.runPolicy.schedulingPolicy.queue is immutable",
    );
    let inline = (
        "inline",
        r#""schedulingPolicy": {"queue": "a"}"#,
        r#"{"spec": {"schedulingPolicy": EDIT}}"#,
        "spec.schedulingPolicy.queue: spec.schedulingPolicy.queue is immutable",
    );
    for (name, policy, patch, refusal) in [nested, inline] {
        let job = JOB.replace("NAME", name).replace("POLICY", policy);
        assert_eq!(api::create(cluster, &namespace, &job, &[]).await, [""; 0]);
        let edit = async |edit: &str| {
            let patch = patch.replace("EDIT", edit);
            merge(cluster, &namespace, name, &patch).await
        };
        let refused = edit(r#"{"queue": "b"}"#).await;
        assert_eq!(api::lines(&refused.stderr), [refusal]);
        edit(r#"{"minAvailable": 5}"#).await.success();
        edit(r#"{"queue": "a", "priorityClass": "high"}"#).await.success();
        let scale = r#"{"spec": {"mxReplicaSpecs": {"Worker": {"replicas": 7}}}}"#;
        merge(cluster, &namespace, name, scale).await.success();
    }
}

/// The field can neither be added nor removed, except with its default value.
#[tokio::test]
async fn the_layout_of_a_job_is_immutable() {
    let cluster = ControlPlane::shared().await;
    cluster.install_crds().await;
    let namespace = cluster.namespace("layouts").await;
    let layout = |layout: &str| format!(r#""runPolicy": {{"layout": "{layout}"}}"#);
    let none = r#""runPolicy": {}"#.to_owned();
    let refusal = "spec.runPolicy.layout: field is immutable; create a new job instead";
    for (name, policy, good, bad) in [
        ("none", none, r#""Plain""#, r#""Compact""#),
        ("plain", layout("Plain"), "null", r#""Compact""#),
        ("compact", layout("Compact"), r#""Compact""#, "null"),
    ] {
        let job = JOB.replace("NAME", name).replace("POLICY", &policy);
        assert_eq!(api::create(cluster, &namespace, &job, &[]).await, [""; 0]);
        let edit = async |layout: &str| {
            let patch = format!(r#"{{"spec": {{"runPolicy": {{"layout": {layout}}}}}}}"#);
            merge(cluster, &namespace, name, &patch).await
        };
        assert_eq!(api::lines(&edit(bad).await.stderr), [refusal], "{name}");
        edit(good).await.success();
    }
    let without = r#"{"spec": {"runPolicy": null}}"#;
    let refused = merge(cluster, &namespace, "compact", without).await;
    assert_eq!(api::lines(&refused.stderr), [refusal]);
}

/// As with the Go operator's definition. A port of another protocol keeps that protocol.
#[tokio::test]
async fn ports_are_stored_with_their_protocol() {
    let cluster = ControlPlane::shared().await;
    cluster.install_crds().await;
    let namespace = cluster.namespace("ports").await;
    let ports = r#""image": "i", "ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "UDP"}]"#;
    for version in ["v1", "v1beta1", "v1alpha2"] {
        let job = JOB
            .replace("NAME", version)
            .replace("POLICY,", "")
            .replace("kubeflow.org/v1", &format!("kubeflow.org/{version}"))
            .replace(r#""image": "i""#, ports);
        assert_eq!(api::create(cluster, &namespace, &job, &[]).await, [""; 0]);
        let path = "jsonpath={.spec.mxReplicaSpecs.Worker.template.spec.containers[0].ports[*].protocol}";
        let get = ["get", "mxjob", version, "-n", &namespace, "-o", path];
        assert_eq!(cluster.kubectl(&get).await.success(), "TCP UDP");
    }
}

/// Either field may name the manager, and a job may set both.
#[tokio::test]
async fn a_manager_stays_and_is_one() {
    let cluster = ControlPlane::shared().await;
    cluster.install_crds().await;
    let namespace = cluster.namespace("managers").await;
    let (other, ours) = ("kueue.x-k8s.io/multikueue", "kubeflow.org/training-operator");
    let top = |manager: &str| format!(r#""managedBy": "{manager}""#);
    let nested = |manager: &str| format!(r#""runPolicy": {{"managedBy": "{manager}"}}"#);
    let job = |name: &str, policy: &str| JOB.replace("NAME", name).replace("POLICY", policy);
    let both = |one: &str, two: &str| format!("{}, {}", top(one), nested(two));
    for (name, policy, good, bad) in [
        // The field may be added or removed if it does not change the result.
        ("top", top(other), nested(other), top(ours)),
        ("nested", nested(other), top(other), both(ours, ours)),
        ("both", both(other, other), nested(other), both(ours, ours)),
        (
            "none",
            r#""runPolicy": {}"#.to_owned(),
            both(ours, ""),
            top(other),
        ),
        ("ours", both(ours, ours), both("", ""), nested(other)),
    ] {
        assert_eq!(
            api::create(cluster, &namespace, &job(name, &policy), &[]).await,
            [""; 0]
        );
        let edit = async |policy: &str| {
            merge(cluster, &namespace, name, &format!(r#"{{"spec": {{{policy}}}}}"#)).await
        };
        edit(&good).await.success();
        let refused = api::lines(&edit(&bad).await.stderr);
        let words = "field is immutable; create a new job instead";
        let differ = "spec.managedBy: must have the same value as spec.runPolicy.managedBy; change or remove one of them";
        let is_told = |line: &String| line.ends_with(&format!("managedBy: {words}")) || line == differ;
        assert!(
            !refused.is_empty() && refused.iter().all(is_told),
            "{name}: {refused:?}"
        );
    }
    let differ = api::create(cluster, &namespace, &job("two", &both(other, ours)), &[]).await;
    assert_eq!(
        differ,
        [
            "spec.managedBy: must have the same value as spec.runPolicy.managedBy; change or remove one of them"
        ]
    );
    let unknown = api::create(cluster, &namespace, &job("unknown", &top("me")), &[]).await;
    assert_eq!(
        unknown,
        [format!(
            "spec.managedBy: unknown value \"me\"; use one of {ours}, {other}"
        )]
    );
}
