//! Ownership of objects.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use training_job::api::ConditionType;
use training_job_tensorflow::TFJob;
use training_job_testbed::cluster::On;

use crate::install::life::create;
use crate::rig::jobs::job;
use crate::rig::stage::Stage;

#[tokio::test]
async fn a_namesake_made_at_once_has_nothing_of_its_predecessor() {
    let stage = Stage::new("namesake").await;
    let operator = stage.operator();
    let mut job_uid = stage.create(job("a", 4)).await.uid();
    let mut old = stage.until_all_run("a", 4).await;
    for _ in 0..2 {
        stage.delete("a").await;
        let made = stage.create(job("a", 4)).await;
        assert_ne!(made.uid(), job_uid);
        job_uid = made.uid();
        let new = stage.until_all_run("a", 4).await;
        assert_eq!(new.len(), 4);
        for pod in stage.pods().list(&Default::default()).await.unwrap() {
            assert_ne!(old[&pod.name_any()], pod.uid().unwrap());
            assert_eq!(Some(&pod.owner_references()[0].uid), job_uid.as_ref());
        }
        let status = stage.jobs().get("a").await.unwrap().status.unwrap().job;
        assert_eq!(
            (status.restart_count, &status.failure),
            (0, &None),
            "the old pods' end is not its failure"
        );
        old = new;
    }
    assert_eq!(
        stage.pods_deleted(),
        0,
        "the garbage collector deletes, not the operator"
    );
    assert_eq!(stage.count_events("a", "FailedCreatePod").await, 0);
    let refused = stage
        .proxy
        .calls()
        .iter()
        .filter(|c| c.verb == "create" && c.code == Some(409))
        .count();
    // At most one conflict for each object of each job of the same name, and a few more if the garbage collector is
    // slow.
    assert!(refused <= 40, "{refused} creations too early");
    stage.succeed("a", 4).await;
    operator.expect_well();
}

#[tokio::test]
async fn jobs_of_two_kinds_under_one_name_do_not_touch_each_other() {
    let stage = Stage::new("two-kinds").await;
    let operator = stage.operator();
    stage.create(job("a", 2)).await;
    let pods = stage.until_all_run("a", 2).await;
    let api: Api<TFJob> = Api::namespaced(stage.cluster.client(), &stage.namespace);
    let tf = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "a"},
        "spec": {"runPolicy": {"cleanPodPolicy": "All"}, "tfReplicaSpecs": {"Worker": {
            "replicas": 2, "template": {"spec": {"containers": [{"name": "tensorflow", "image": "i"}]}},
        }}},
    });
    let tf: TFJob = serde_json::from_value(tf).unwrap();
    api.create(&Default::default(), &tf).await.unwrap();
    let message = stage.until_event("a", "FailedCreateService").await;
    assert!(message.contains("a-worker-0: the name is taken"), "{message}");
    stage.good_job().await;

    // The pods of the job of the same name are kept.
    api.delete("a", &DeleteParams::background()).await.unwrap();
    stage
        .cluster
        .wait::<TFJob>(&stage.namespace, "a", |job| job.is_none())
        .await;
    stage.until_pods("good", 1).await;
    let found = stage.pods_of("a").await;
    for (name, uid) in &pods {
        assert_eq!(found.get(name), Some(uid), "{name}");
    }
    assert_eq!(stage.pods_deleted(), 0);
    stage.succeed("a", 2).await;

    // In the other direction: it begins when the first job is gone.
    api.create(&Default::default(), &tf).await.unwrap();
    stage
        .proxy
        .wait_for(&On::call("get", "services").named("a-worker-0"), 2)
        .await;
    stage.delete("a").await;
    let runs = |job: Option<&TFJob>| {
        job.and_then(|j| j.status.as_ref())
            .is_some_and(|s| s.is(ConditionType::Running))
    };
    stage.cluster.wait(&stage.namespace, "a", runs).await;
    assert_eq!(stage.pods_deleted(), 0);
    operator.expect_well();
}

#[tokio::test]
async fn labels_that_a_client_takes_off_a_pod_are_restored_and_restart_nothing() {
    let stage = Stage::new("labels").await;
    let operator = stage.operator();
    stage.create(job("a", 2)).await;
    let before = stage.until_all_run("a", 2).await;
    let name = before.keys().next().unwrap();
    let labels = stage.pods().get(name).await.unwrap().metadata.labels;
    for patch in [
        json!({"training.kubeflow.org/operator-name": null}),
        json!({"training.kubeflow.org/job-name": "other"}),
        json!(null),
    ] {
        let patch = Patch::Merge(json!({"metadata": {"labels": patch}}));
        stage
            .pods()
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
        let has_all = |pod: Option<&Pod>| pod.is_some_and(|pod| pod.metadata.labels == labels);
        stage.cluster.wait(&stage.namespace, name, has_all).await;
    }
    stage.until_event("a", "PodLabelsChanged").await;
    assert_eq!(stage.pods_of("a").await, before);
    let status = stage.jobs().get("a").await.unwrap().status.unwrap().job;
    assert_eq!((status.restart_count, &status.failure), (0, &None));
    stage.succeed("a", 2).await;
    stage.expect_no_harm();
    operator.expect_well();
}

#[tokio::test]
async fn labels_that_admission_takes_off_new_pods_are_restored_and_restart_nothing() {
    let stage = Stage::new("stripped").await;
    strip_labels_of_pods(&stage, &["CREATE"]).await;
    let operator = stage.operator();
    stage.create(job("a", 2)).await;
    stage.until_event("a", "PodLabelsChanged").await;
    let before = stage.until_all_run("a", 2).await;
    stage.succeed("a", 2).await;
    assert_eq!(stage.pods_of("a").await, before);
    let status = stage.jobs().get("a").await.unwrap().status.unwrap().job;
    assert_eq!((status.restart_count, &status.failure), (0, &None));
    let patches = stage.proxy.count(&On::call("patch", "pods"));
    assert!(patches <= 4, "{patches} patches of two pods");
    stage.expect_no_harm();
    operator.expect_well();
}

/// The operator's watch never selects such pods, so it reads them by name.
#[tokio::test]
async fn labels_that_admission_takes_off_at_every_write_are_reported_and_restart_nothing() {
    let stage = Stage::new("kept-off").await;
    strip_labels_of_pods(&stage, &["CREATE", "UPDATE"]).await;
    let operator = stage.operator();
    stage.create(job("a", 2)).await;
    stage.until_event("a", "FailedPatchPod").await;
    let events = stage.events("a").await;
    let told = events.iter().find(|(reason, _)| reason == "FailedPatchPod");
    let (_, told) = told.unwrap();
    assert!(told.starts_with("Error restoring labels: pods a-"), "{told}");
    assert!(told.contains("look for an admission webhook or policy"), "{told}");
    let before = stage.until_all_run("a", 2).await;
    stage.succeed("a", 2).await;
    assert_eq!(stage.pods_of("a").await, before);
    assert_eq!(stage.pods_deleted(), 0);
    stage.expect_no_harm();
    operator.expect_well();
}

/// Has the API server of the stage take the operator's label off all pods of its namespace, and returns when it does so.
async fn strip_labels_of_pods(stage: &Stage<'_>, operations: &[&str]) {
    let name = &stage.namespace;
    let label = "training.kubeflow.org~1operator-name";
    let expression = format!("[JSONPatch{{op: 'remove', path: '/metadata/labels/{label}'}}]");
    let object = |kind: &str, spec: Value| json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    let policy = object(
        "MutatingAdmissionPolicy",
        json!({
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
                "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
                    "operations": operations}],
            },
            "matchConditions": [{"name": "has-it", "expression":
                "has(object.metadata.labels) && 'training.kubeflow.org/operator-name' in object.metadata.labels"}],
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
        }),
    );
    let binding = object("MutatingAdmissionPolicyBinding", json!({"policyName": name}));
    create(stage.cluster, name, &[policy, binding]).await;
    // The API server applies a policy some time after it is stored.
    let labels = json!({"training.kubeflow.org/operator-name": "none"});
    let probe = json!({"metadata": {"name": "probe", "labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let probe: Pod = serde_json::from_value(probe).unwrap();
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let stored = async || stage.pods().create(&dry_run, &probe).await.unwrap();
    while !stored().await.labels().is_empty() {
        tokio::task::yield_now().await;
    }
}
