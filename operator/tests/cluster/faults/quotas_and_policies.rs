//! Pods that admission rejects.

use k8s_openapi::api::core::v1::{LimitRange, Namespace, ResourceQuota};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PostParams};
use serde_json::json;
use training_job::api::ConditionType;
use training_job_mxnet::MXJob;
use training_job_testbed::cluster::On;

use crate::rig::jobs::{is, job, with_workers};
use crate::rig::stage::Stage;

/// Limits the pods of the stage's namespace to two, and waits until the API server counts them.
async fn limit_pods(stage: &Stage<'_>) -> Api<ResourceQuota> {
    let quotas: Api<ResourceQuota> = Api::namespaced(stage.cluster.client(), &stage.namespace);
    let quota = json!({"metadata": {"name": "pods"}, "spec": {"hard": {"pods": "2"}}});
    quotas
        .create(&PostParams::default(), &serde_json::from_value(quota).unwrap())
        .await
        .unwrap();
    let counted = |quota: Option<&ResourceQuota>| {
        quota
            .and_then(|q| q.status.as_ref()?.used.as_ref())
            .is_some_and(|used| used.contains_key("pods"))
    };
    stage.cluster.wait(&stage.namespace, "pods", counted).await;
    quotas
}

#[tokio::test]
async fn a_quota_stops_a_job_half_made_and_more_of_it_lets_it_go_on() {
    let stage = Stage::new("quota").await;
    let quotas = limit_pods(&stage).await;
    let operator = stage.operator();
    stage.create(job("a", 4)).await;
    let message = stage.until_event("a", "FailedCreatePod").await;
    assert!(message.contains("exceeded quota"), "{message}");
    let first = stage.until_pods("a", 2).await;
    let holds_a_part = |job: Option<&MXJob>| {
        let status = job.and_then(|job| job.status.as_ref());
        let status = status.map(|status| (&*status.job.waiting_reason, status.job.waiting_since.is_some()));
        status == Some(("FailedCreatePod", true))
    };
    stage.cluster.wait(&stage.namespace, "a", holds_a_part).await;
    let raised = Patch::Merge(json!({"spec": {"hard": {"pods": "4"}}}));
    quotas.patch("pods", &Default::default(), &raised).await.unwrap();
    let pods = stage.until_all_run("a", 4).await;
    for pod in &first {
        assert_eq!(pods[&pod.name_any()], pod.uid().unwrap(), "what was there stays");
    }
    assert_eq!(stage.pods_deleted(), 0);
    let mut refusals = stage.events("a").await;
    // A server that is busy may also report that the quota changed at the same time.
    refusals.retain(|(reason, message)| reason == "FailedCreatePod" && message.contains("exceeded quota"));
    assert_eq!(refusals.len(), 1, "it is told once: {refusals:?}");
    let tries = stage.proxy.count(&On::call("create", "pods"));
    assert!(tries < 24, "{tries} tries");
    stage.succeed("a", 4).await;
    stage.expect_no_harm();
    operator.expect_well();
}

/// The counts show that the operator neither polls nor wakes all jobs at once.
#[tokio::test]
async fn jobs_that_a_quota_refuses_begin_in_order_when_others_end() {
    let stage = Stage::new("quota-order").await;
    limit_pods(&stage).await;
    let operator = stage.operator();
    let names = ["a", "b", "c", "d", "e", "f"];
    for name in names {
        stage.create(job(name, 2)).await;
        if name == "a" {
            stage.until_all_run(name, 2).await;
        } else {
            stage.until_event(name, "FailedCreatePod").await;
        }
    }
    for pair in names.windows(2) {
        stage.kubelet.succeeds(&format!("{}-worker-0", pair[0])).await;
        stage.succeed(pair[0], 2).await;
        stage.until_all_run(pair[1], 2).await;
    }
    stage.succeed("f", 2).await;
    for name in names {
        let tries = stage.proxy.count(&On::call("create", "pods").prefixed(name));
        assert!(tries < 24, "{tries} tries of {name}");
        assert!(stage.count_events(name, "FailedCreatePod").await <= 2, "{name}");
    }
    stage.expect_no_harm();
    operator.expect_well();
}

#[tokio::test]
async fn pods_denied_by_a_policy_are_reported_and_created_once_allowed() {
    let stage = Stage::new("policy").await;
    let limits: Api<LimitRange> = Api::namespaced(stage.cluster.client(), &stage.namespace);
    let limit = json!({"metadata": {"name": "small"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}});
    limits
        .create(&PostParams::default(), &serde_json::from_value(limit).unwrap())
        .await
        .unwrap();
    let operator = stage.operator();
    let large = json!({"requests": {"cpu": "8"}, "limits": {"cpu": "8"}});
    // The server applies limits some moments after it stored them, so the test probes with a pod of its own.
    let probe = json!({"metadata": {"name": "probe"}, "spec": {"containers": [{"name": "c", "image": "i", "resources": large}]}});
    let probe = serde_json::from_value(probe).unwrap();
    while stage.pods().create(&PostParams::default(), &probe).await.is_ok() {
        stage
            .pods()
            .delete("probe", &DeleteParams::default().grace_period(0))
            .await
            .unwrap();
    }
    stage
        .create(with_workers(job("a", 2), |spec| {
            spec["containers"][0]["resources"] = large
        }))
        .await;
    let message = stage.until_event("a", "FailedCreatePod").await;
    assert!(
        message.contains("maximum cpu usage per Container is 1"),
        "{message}"
    );
    stage.good_job().await;
    limits.delete("small", &DeleteParams::default()).await.unwrap();
    stage.until_all_run("a", 2).await;
    assert_eq!(
        stage.count_events("a", "FailedCreatePod").await,
        1,
        "it is told once"
    );
    stage.succeed("a", 2).await;

    let namespaces: Api<Namespace> = Api::all(stage.cluster.client());
    let enforce = async |level| {
        let labels = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}});
        namespaces
            .patch(&stage.namespace, &Default::default(), &Patch::Merge(labels))
            .await
            .unwrap();
    };
    enforce("restricted").await;
    while stage
        .pods()
        .create(
            &PostParams {
                dry_run: true,
                ..PostParams::default()
            },
            &serde_json::from_value(
                json!({"metadata": {"name": "probe"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}),
            )
            .unwrap(),
        )
        .await
        .is_ok()
    {}
    stage.create(job("b", 2)).await;
    let message = stage.until_event("b", "FailedCreatePod").await;
    assert!(message.contains("violates PodSecurity"), "{message}");
    assert!(!is(&stage.jobs().get("b").await.unwrap(), ConditionType::Failed));
    enforce("privileged").await;
    stage.until_all_run("b", 2).await;
    let tries = stage.proxy.count(&On::call("create", "pods").prefixed("b"));
    assert!(tries < 24, "{tries} tries");
    stage.succeed("b", 2).await;
    stage.expect_no_harm();
    operator.expect_well();
}
