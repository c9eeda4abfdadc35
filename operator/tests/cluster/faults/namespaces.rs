//! A namespace that is deleted while a job is created.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, ListParams, Patch, PostParams};
use serde_json::json;
use training_job_testbed::cluster::{Fault, On, RecordedCall, wait};

use crate::rig::jobs::job;
use crate::rig::stage::Stage;

/// The server adds the cause to its 403. One reconcile learns of it, and the next ones make no call.
#[tokio::test]
async fn a_terminating_namespace_gets_no_children() {
    let stage = Stage::new("namespace-ends").await;
    let operator = stage.operator();
    let client = stage.cluster.client();
    let configs: Api<ConfigMap> = Api::namespaced(client.clone(), &stage.namespace);
    let kept = json!(["example.com/stay"]);
    let anchor = json!({"metadata": {"name": "anchor", "finalizers": kept}});
    let anchor = serde_json::from_value(anchor).unwrap();
    configs.create(&PostParams::default(), &anchor).await.unwrap();
    let create = On::call("create", "services").prefixed("a");
    let held = stage.proxy.fault(create, Fault::Held);
    // The job also remains for a while, as one with a finalizer does.
    let mut job = job("a", 4);
    job["metadata"]["finalizers"] = kept;
    stage.create(job).await;
    held.happened(4).await;
    let namespaces: Api<Namespace> = Api::all(client);
    let now = DeleteParams::default();
    namespaces.delete(&stage.namespace, &now).await.unwrap();
    let is_deleted = |job: &training_job_mxnet::MXJob| job.metadata.deletion_timestamp.is_some();
    stage.until_job("a", is_deleted).await;
    held.lift();
    let refused = |call: &RecordedCall| call.verb == "create" && call.code == Some(403);
    stage.proxy.until_call("a refusal", refused).await;
    for mark in ["1", "2", "3"] {
        stage.touch("a", mark).await;
    }
    let pods = stage.pods().list(&ListParams::default()).await.unwrap();
    assert!(pods.items.is_empty(), "{pods:?}");
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let params = Default::default();
    stage.jobs().patch("a", &params, &free).await.unwrap();
    configs.patch("anchor", &params, &free).await.unwrap();
    wait(namespaces, &stage.namespace, |found| found.is_none()).await;
    let tries = stage.proxy.calls().iter().filter(|call| refused(call)).count();
    // One reconcile: four services that were in flight, four pods, and an event for each kind.
    assert!(tries <= 10, "{tries} tries");
    assert_eq!(stage.pods_deleted(), 0);
    operator.expect_well();
}
