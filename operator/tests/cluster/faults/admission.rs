//! Real admission refuses pods or changes them. The simulation has the same responses without their reasons.

use k8s_openapi::api::core::v1::{Namespace, Pod, ResourceQuota};
use kube::ResourceExt;
use kube::api::{Api, Patch, PostParams};
use serde_json::{Value, json};
use training_job::api::ConditionType;
use training_job_mxnet::MXJob;
use training_job_testbed::cluster::On;
use training_operator_testing::operator::Operator;

use crate::install::life::create;
use crate::rig::jobs::{is, job, with_workers};
use crate::rig::stage::Stage;

/// Creates job `a`, and waits until it reports once that its pods are refused, in the server's words. It makes few calls,
/// delays no other job, and has not failed.
async fn is_refused(stage: &Stage<'_>, job: Value, words: &str) {
    stage.create(job).await;
    let message = stage.until_event("a", "FailedCreatePod").await;
    assert!(message.contains(words) && message.len() <= 1_024, "{message}");
    // An edit before the first status would restart the job.
    let found = stage.until("a", ConditionType::Created).await;
    assert!(!is(&found, ConditionType::Failed));
}

/// Waits until the job's pods run, which keep what was there before.
async fn goes_on(stage: &Stage<'_>, operator: &Operator, replicas: u32) {
    let before = stage.pods_of("a").await;
    let pods = stage.until_all_run("a", replicas).await;
    for (name, uid) in before {
        assert_eq!(pods[&name], uid, "{name}");
    }
    let mut told = stage.events("a").await;
    // A server that is busy may also report that a quota changed at the same time.
    told.retain(|(reason, message)| {
        reason == "FailedCreatePod" && !message.contains("Operation cannot be fulfilled")
    });
    assert_eq!(told.len(), 1, "it is told once: {told:?}");
    let tries = stage.proxy.count(&On::call("create", "pods").named("a-worker-0"));
    assert!(tries < 12, "{tries} tries");
    stage.succeed("a", replicas).await;
    stage.expect_no_harm();
    operator.expect_well();
}

/// Waits until the server refuses such a pod. It applies a policy some time after it stored it.
async fn until_refused(stage: &Stage<'_>, container: Value) {
    while stored(stage, json!({}), container.clone()).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

/// Returns the pod that the server would store for one with these labels and this container.
async fn stored(stage: &Stage<'_>, labels: Value, mut container: Value) -> kube::Result<Pod> {
    (container["name"], container["image"]) = (json!("c"), json!("i"));
    let pod = json!({"metadata": {"name": "probe", "labels": labels}, "spec": {"containers": [container]}});
    let pod = serde_json::from_value(pod).unwrap();
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    stage.pods().create(&dry_run, &pod).await
}

/// Returns an edit of the workers' containers.
fn workers(containers: Value) -> Value {
    json!({"spec": {"mxReplicaSpecs": {"Worker": {"template": {"spec": {"containers": containers}}}}}})
}

#[tokio::test]
async fn a_job_with_a_quota_for_half_of_its_pods_runs_when_the_quota_is_raised() {
    let stage = Stage::new("quota").await;
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "pods"}, "spec": {"hard": {"pods": "2"}}});
    create(stage.cluster, &stage.namespace, &[quota]).await;
    let counted = |quota: Option<&ResourceQuota>| {
        let used = quota.and_then(|quota| quota.status.as_ref()?.used.as_ref());
        used.is_some_and(|used| used.contains_key("pods"))
    };
    stage.cluster.wait(&stage.namespace, "pods", counted).await;
    let operator = stage.operator();
    is_refused(&stage, job("a", 4), "exceeded quota").await;
    let waits = |job: Option<&MXJob>| {
        let status = job.and_then(|job| job.status.as_ref());
        status.is_some_and(|status| {
            status.job.waiting_reason == "FailedCreatePod" && status.job.waiting_since.is_some()
        })
    };
    stage.cluster.wait(&stage.namespace, "a", waits).await;
    let quotas: Api<ResourceQuota> = Api::namespaced(stage.cluster.client(), &stage.namespace);
    let raised = Patch::Merge(json!({"spec": {"hard": {"pods": "4"}}}));
    quotas.patch("pods", &Default::default(), &raised).await.unwrap();
    goes_on(&stage, &operator, 4).await;
}

#[tokio::test]
async fn a_pod_above_the_limit_range_is_created_when_the_job_asks_for_less() {
    let stage = Stage::new("limits").await;
    let limits = json!([{"type": "Container", "max": {"cpu": "1"}}]);
    let limits = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}, "spec": {"limits": limits}});
    create(stage.cluster, &stage.namespace, &[limits]).await;
    let large = json!({"requests": {"cpu": "8"}, "limits": {"cpu": "8"}});
    until_refused(&stage, json!({"resources": large})).await;
    let operator = stage.operator();
    let large = with_workers(job("a", 2), |spec| spec["containers"][0]["resources"] = large);
    is_refused(&stage, large, "maximum cpu usage per Container is 1").await;
    let small = json!([{"name": "mxnet", "image": "i", "resources": {"limits": {"cpu": "1"}}}]);
    stage.edit("a", workers(small)).await;
    goes_on(&stage, &operator, 2).await;
}

#[tokio::test]
async fn a_pod_that_pod_security_denies_is_created_once_it_is_allowed() {
    let stage = Stage::new("pod-security").await;
    let enforce = async |level| {
        let labels = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}});
        let namespaces: Api<Namespace> = Api::all(stage.cluster.client());
        let params = Default::default();
        let changed = namespaces
            .patch(&stage.namespace, &params, &Patch::Merge(labels))
            .await;
        changed.unwrap();
    };
    enforce("restricted").await;
    until_refused(&stage, json!({})).await;
    let operator = stage.operator();
    is_refused(&stage, job("a", 2), "violates PodSecurity").await;
    enforce("privileged").await;
    goes_on(&stage, &operator, 2).await;
}

/// The job itself is just below the limit. Each of its containers gets the map of the whole cluster.
#[tokio::test]
async fn a_pod_that_is_too_large_is_created_when_the_job_is_smaller() {
    let stage = Stage::new("too-large").await;
    let operator = stage.operator();
    let variable = |n| json!({"name": format!("V{n}"), "value": "x".repeat(104_000)});
    let variables: Vec<_> = (0..15).map(variable).collect();
    let other = |n| json!({"name": format!("c{n}"), "image": "i"});
    let mut containers: Vec<_> = (0..63).map(other).collect();
    containers.push(json!({"name": "mxnet", "image": "i", "env": variables}));
    let large = with_workers(job("a", 6), |spec| spec["containers"] = json!(containers));
    is_refused(&stage, large, "too large").await;
    stage
        .edit("a", workers(json!([{"name": "mxnet", "image": "i"}])))
        .await;
    goes_on(&stage, &operator, 6).await;
}

#[tokio::test]
async fn an_invalid_pod_is_created_when_the_job_is_corrected() {
    let stage = Stage::new("invalid-pod").await;
    let operator = stage.operator();
    let mounts = json!([{"name": "nothing", "mountPath": "/m"}]);
    let wrong = with_workers(job("a", 2), |spec| spec["containers"][0]["volumeMounts"] = mounts);
    is_refused(&stage, wrong, "volumeMounts[0].name: Not found: \"nothing\"").await;
    // The valid pods are created, so that a fix of the job leaves less to do.
    assert!(stage.pods_of("a").await.contains_key("a-scheduler-0"));
    stage
        .edit(
            "a",
            workers(json!([{"name": "mxnet", "image": "i", "volumeMounts": []}])),
        )
        .await;
    goes_on(&stage, &operator, 2).await;
}

/// The operator's watch does not select a pod without its label. If the label is taken off at every write, the pod is only
/// read by name.
#[tokio::test]
async fn labels_that_admission_takes_off_restart_nothing_and_are_restored_or_reported() {
    let rows = [
        ("stripped", &["CREATE"][..], "PodLabelsChanged", "labels"),
        (
            "kept-off",
            &["CREATE", "UPDATE"],
            "FailedPatchPod",
            "look for an admission webhook or policy",
        ),
    ];
    for (name, operations, reason, words) in rows {
        let stage = Stage::new(name).await;
        strip_labels_of_pods(&stage, operations).await;
        let operator = stage.operator();
        stage.create(job("a", 2)).await;
        let message = stage.until_event("a", reason).await;
        assert!(message.contains(words), "{name}: {message}");
        let before = stage.until_all_run("a", 2).await;
        let status = stage.succeed("a", 2).await.status.unwrap().job;
        assert_eq!(stage.pods_of("a").await, before, "{name}");
        assert_eq!((status.restart_count, &status.failure), (0, &None), "{name}");
        assert_eq!(stage.pods_deleted(), 0, "{name}");
        stage.expect_no_harm();
        operator.expect_well();
    }
}

/// Has the API server take the operator's label off all pods of the namespace, and returns when it does so.
async fn strip_labels_of_pods(stage: &Stage<'_>, operations: &[&str]) {
    let name = &stage.namespace;
    let label = "training.kubeflow.org~1operator-name";
    let expression = format!("[JSONPatch{{op: 'remove', path: '/metadata/labels/{label}'}}]");
    let object = |kind: &str, spec: Value| json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    let rule =
        json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": operations});
    let has_it =
        "has(object.metadata.labels) && 'training.kubeflow.org/operator-name' in object.metadata.labels";
    let spec = json!({
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
            "resourceRules": [rule],
        },
        "matchConditions": [{"name": "has-it", "expression": has_it}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
    });
    let binding = object("MutatingAdmissionPolicyBinding", json!({"policyName": name}));
    let policy = object("MutatingAdmissionPolicy", spec);
    create(stage.cluster, name, &[policy, binding]).await;
    let labels = json!({"training.kubeflow.org/operator-name": "none"});
    while !stored(stage, labels.clone(), json!({}))
        .await
        .unwrap()
        .labels()
        .is_empty()
    {
        tokio::task::yield_now().await;
    }
}
