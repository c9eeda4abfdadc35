//! Jobs and namespaces that are deleted while a job is created.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Service};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PostParams};
use serde_json::json;
use training_job_testbed::cluster::{Fault, On, wait, wait_for_all};

use crate::rig::jobs::job;
use crate::rig::stage::Stage;

#[tokio::test]
async fn a_job_deleted_at_any_call_of_its_making_leaves_nothing() {
    let stage = Stage::new("deleted").await;
    let operator = stage.operator();
    stage.create(job("probe", 2)).await;
    stage.until_all_run("probe", 2).await;
    let made = stage.proxy.wait_for(&On::writes().prefixed("probe"), 5).await;
    let calls = made.len();
    assert!(
        (7..=8).contains(&calls),
        "services, pods, statuses, events: {calls}"
    );
    // One job for each call, which is held before it arrives, and one for each call whose response is held.
    let mut planned = Vec::new();
    for number in 0..6 {
        for (kind, fault) in [("before", Fault::Held), ("after", Fault::Unanswered)] {
            let name = format!("{kind}-{number}x");
            let on = On::writes().prefixed(&name).skip(number).times(1);
            planned.push((name, stage.proxy.fault(on, fault)));
        }
    }
    let lives = planned.iter().map(async |(name, plan)| {
        stage.create(job(name, 2)).await;
        plan.happened(1).await;
        stage.delete(name).await;
        stage
            .cluster
            .wait::<training_job_mxnet::MXJob>(&stage.namespace, name, |job| job.is_none())
            .await;
        plan.lift();
    });
    futures::future::join_all(lives).await;
    stage.good_job().await;
    // Calls in flight may still create objects, which are deleted again.
    let kept = |name: &str| name.starts_with("probe") || name.starts_with("good");
    wait_for_all(stage.pods(), "", |all: &[Pod]| {
        all.iter().all(|pod| kept(&pod.name_any()))
    })
    .await;
    let services: Api<Service> = Api::namespaced(stage.cluster.client(), &stage.namespace);
    wait_for_all(services, "", |all: &[Service]| {
        all.iter().all(|s| kept(&s.name_any()))
    })
    .await;
    let deleted = |call: &&training_job_testbed::cluster::RecordedCall| call.verb == "delete";
    let deletes: Vec<_> = stage
        .proxy
        .calls()
        .iter()
        .filter(deleted)
        .map(|c| c.summary())
        .collect();
    assert!(
        deletes.is_empty(),
        "the garbage collector deletes, not the operator: {deletes:?}"
    );
    stage.succeed("probe", 2).await;
    stage.expect_no_harm();
    operator.expect_well();
}

#[tokio::test]
async fn in_a_namespace_that_goes_nothing_is_made_and_no_storm_blows() {
    let stage = Stage::new("namespace-ends").await;
    let operator = stage.operator();
    let configs: Api<ConfigMap> = Api::namespaced(stage.cluster.client(), &stage.namespace);
    let anchor = json!({"metadata": {"name": "anchor", "finalizers": ["example.com/stay"]}});
    configs
        .create(&PostParams::default(), &serde_json::from_value(anchor).unwrap())
        .await
        .unwrap();
    let held = stage
        .proxy
        .fault(On::call("create", "services").prefixed("a"), Fault::Held);
    // The job also remains for a while, as one with a finalizer does.
    let mut kept = job("a", 4);
    kept["metadata"]["finalizers"] = json!(["example.com/stay"]);
    stage.create(kept).await;
    held.happened(4).await;
    let namespaces: Api<Namespace> = Api::all(stage.cluster.client());
    namespaces
        .delete(&stage.namespace, &DeleteParams::default())
        .await
        .unwrap();
    stage
        .until_job("a", |job| job.metadata.deletion_timestamp.is_some())
        .await;
    held.lift();
    let terminating = |call: &training_job_testbed::cluster::RecordedCall| {
        call.verb == "create" && call.name.starts_with('a') && call.code == Some(403)
    };
    stage
        .proxy
        .until_call("a refusal since the namespace terminates", terminating)
        .await;
    for mark in ["1", "2", "3"] {
        stage.touch("a", mark).await;
    }
    let names: BTreeSet<_> = stage
        .pods()
        .list(&ListParams::default())
        .await
        .unwrap()
        .iter()
        .map(|p| p.name_any())
        .collect();
    assert!(names.is_empty(), "{names:?}");
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    stage.jobs().patch("a", &Default::default(), &free).await.unwrap();
    configs.patch("anchor", &Default::default(), &free).await.unwrap();
    wait(namespaces, &stage.namespace, |found| found.is_none()).await;
    let tries = stage.proxy.calls().iter().filter(|c| terminating(c)).count();
    // One reconcile: four services that were in flight, four pods, and an event for each kind.
    assert!(tries <= 10, "{tries} tries");
    assert_eq!(stage.pods_deleted(), 0);
    operator.expect_well();
}
