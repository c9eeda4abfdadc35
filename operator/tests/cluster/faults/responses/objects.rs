//! Objects that the API server rejects because they are too large or invalid.

use kube::api::ListParams;
use serde_json::{Value, json};
use training_job::api::ConditionType;
use training_job_testbed::cluster::On;

use crate::rig::jobs::{is, job, with_workers};
use crate::rig::stage::Stage;

/// Creates a job whose pods are rejected, and waits until it reports this.
async fn refused(stage: &Stage<'_>, job: Value, why: &str) {
    stage.create(job).await;
    let message = stage.until_event("a", "FailedCreatePod").await;
    assert!(message.contains(why), "{message}");
    assert!(message.len() <= 1_024);
    let found = stage
        .until_job("a", |job| is(job, ConditionType::Created))
        .await
        .unwrap();
    assert!(!is(&found, ConditionType::Failed));
    // The operator does not retry in a hot loop, and serves other jobs in the meantime.
    stage.good_job().await;
    let tries = stage.proxy.count(&On::call("create", "pods").named("a-worker-0"));
    assert!(tries < 10, "{tries} tries");
    assert_eq!(
        stage.count_events("a", "FailedCreatePod").await,
        1,
        "it is told once"
    );
}

#[tokio::test]
async fn an_object_that_is_too_large_is_reported_until_it_is_corrected() {
    let stage = Stage::new("too-large").await;
    let operator = stage.operator();
    // The job itself is just below the limit. Each of its containers gets the map of the whole cluster.
    let variables: Vec<_> = (0..15)
        .map(|n| json!({"name": format!("V{n}"), "value": "x".repeat(104_000)}))
        .collect();
    let mut containers: Vec<_> = (0..63)
        .map(|n| json!({"name": format!("c{n}"), "image": "i"}))
        .collect();
    containers.push(json!({"name": "mxnet", "image": "i", "env": variables}));
    let large = with_workers(job("a", 6), |spec| spec["containers"] = json!(containers));
    refused(&stage, large, "too large").await;
    let template = json!({"template": {"spec": {"containers": [{"name": "mxnet", "image": "i"}]}}});
    let mended = json!({"spec": {"mxReplicaSpecs": {"Worker": template}}});
    stage.edit("a", mended).await;
    stage.until_all_run("a", 6).await;
    stage.succeed("a", 6).await;
    stage.expect_no_harm();
    operator.expect_well();
}

#[tokio::test]
async fn an_invalid_pod_is_reported_until_the_job_is_corrected() {
    let stage = Stage::new("invalid-pod").await;
    let operator = stage.operator();
    let mounts = json!([{"name": "nothing", "mountPath": "/m"}]);
    let wrong = with_workers(job("a", 2), |spec| spec["containers"][0]["volumeMounts"] = mounts);
    refused(&stage, wrong, "volumeMounts[0].name: Not found: \"nothing\"").await;
    // The valid pods are created, so that a fix of the job leaves less to do.
    let pods = stage.pods().list(&ListParams::default()).await.unwrap();
    assert!(
        pods.iter()
            .any(|pod| pod.metadata.name.as_deref() == Some("a-scheduler-0"))
    );
    let spec = json!({"containers": [{"name": "mxnet", "image": "i", "volumeMounts": []}]});
    let template = json!({"template": {"spec": spec}});
    stage
        .edit("a", json!({"spec": {"mxReplicaSpecs": {"Worker": template}}}))
        .await;
    stage.until_all_run("a", 2).await;
    stage.succeed("a", 2).await;
    stage.expect_no_harm();
    operator.expect_well();
}
