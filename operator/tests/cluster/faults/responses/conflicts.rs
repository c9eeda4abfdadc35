//! Other clients were faster: 409 and 404.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use training_job::api::ConditionType;
use training_job_testbed::cluster::{Fault, On};

use crate::rig::jobs::{cleaned, deciding, job};
use crate::rig::stage::Stage;

#[tokio::test]
async fn a_status_is_written_anew_when_another_has_changed_the_job() {
    let stage = Stage::new("job-changed").await;
    let held = stage.proxy.fault(
        On::call("patch", "mxjobs/status").named("a").times(1),
        Fault::Held,
    );
    let operator = stage.operator();
    stage.create(job("a", 2)).await;
    held.happened(1).await;
    stage.touch("a", "by somebody").await;
    held.lift();
    stage.until_all_run("a", 2).await;
    let ended = stage.succeed("a", 2).await;
    assert_eq!(ended.annotations()["touched"], "by somebody");
    let conditions = ended.status.unwrap().job.conditions;
    let types: Vec<_> = conditions.iter().map(|c| &*c.type_).collect();
    assert_eq!(types, ["Created", "Running", "Succeeded"]);
    let calls = stage.proxy.calls();
    let refused = calls
        .iter()
        .filter(|c| c.subresource == "status" && c.code == Some(409));
    assert_eq!(refused.count(), 1);
    stage.expect_no_harm();
    operator.expect_well();
}

#[tokio::test]
async fn an_own_object_that_is_there_already_is_taken_for_made() {
    let stage = Stage::new("own-object").await;
    let operator = stage.operator();
    stage.proxy.watched("pods", 1).await;
    // Only the conflict over the name reveals that the pod exists.
    let frozen = stage.proxy.freeze_watches("pods");
    assert_eq!(frozen.count(), 1);
    let create = On::call("create", "pods").named("a-worker-0");
    let lost = stage.proxy.fault(create.clone().times(1), Fault::AnswerLost);
    stage.create(job("a", 2)).await;
    lost.happened(1).await;
    stage
        .proxy
        .wait_for(&On::call("get", "pods").named("a-worker-0"), 1)
        .await;
    let uid = stage.pods_of("a").await["a-worker-0"].clone();
    frozen.thaw();
    let run = stage.until_all_run("a", 2).await;
    assert_eq!(run["a-worker-0"], uid);
    let codes: Vec<_> = stage
        .proxy
        .calls()
        .iter()
        .filter(|c| c.name == "a-worker-0" && c.verb == "create" && c.resource == "pods")
        .map(|c| c.code)
        .collect();
    assert_eq!(codes, [Some(201), Some(409)]);
    assert_eq!(stage.pods_deleted(), 0);
    stage.succeed("a", 2).await;
    stage.expect_no_harm();
    operator.expect_well();
}

#[tokio::test]
async fn a_strangers_object_under_the_name_is_left_alone() {
    let stage = Stage::new("foreign-object").await;
    let strange = |name: &str, owner| -> Pod {
        let owners = if owner {
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u", "controller": true}])
        } else {
            json!([])
        };
        serde_json::from_value(json!({
            // A finalizer prevents the garbage collector from deleting an object whose owner is missing.
            "metadata": {"name": name, "ownerReferences": owners, "finalizers": ["example.com/stay"]},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }))
        .unwrap()
    };
    let pods = stage.pods();
    let plain = pods
        .create(&PostParams::default(), &strange("a-worker-0", false))
        .await
        .unwrap();
    let owned = strange("b-worker-0", true);
    pods.create(&PostParams::default(), &owned).await.unwrap();
    let operator = stage.operator();
    stage.create(job("a", 2)).await;
    stage.create(job("b", 1)).await;
    let message = stage.until_event("a", "FailedCreatePod").await;
    assert!(
        message.contains("a-worker-0") && message.contains("does not control (it has no controller)"),
        "{message}"
    );
    stage.good_job().await;
    let now = pods.get("a-worker-0").await.unwrap();
    assert_eq!((now.uid(), now.labels()), (plain.uid(), plain.labels()));
    assert!(now.metadata.deletion_timestamp.is_none() && now.owner_references().is_empty());
    assert_eq!(stage.pods_deleted(), 0);

    // When the foreign pod is deleted, the job continues.
    for name in ["a-worker-0", "b-worker-0"] {
        let free = kube::api::Patch::Merge(json!({"metadata": {"finalizers": null}}));
        pods.patch(name, &Default::default(), &free).await.unwrap();
        let _ = pods.delete(name, &DeleteParams::default().grace_period(0)).await;
    }
    stage.until_all_run("a", 2).await;
    assert_eq!(
        stage.count_events("a", "FailedCreatePod").await,
        1,
        "it is told once"
    );
    let tries = stage.proxy.count(&On::call("create", "pods").named("a-worker-0"));
    assert!(tries < 10, "{tries} tries");
    stage.expect_no_harm();
    operator.expect_well();
}

#[tokio::test]
async fn a_job_waits_for_its_predecessors_pods_to_go() {
    let stage = Stage::new("predecessor").await.without_nodes();
    let operator = stage.operator();
    stage.create(job("a", 2)).await;
    let old = stage.until_pods("a", 2).await;
    for pod in &old {
        // Only a kubelet can end a pod that is bound to a node.
        stage.kubelet.bind(&pod.name_any(), "node").await;
        stage.kubelet.runs(&pod.name_any()).await;
    }
    stage.delete("a").await;
    let leaving = |pods: &[Pod]| {
        pods.iter()
            .filter(|p| p.metadata.deletion_timestamp.is_some())
            .count()
            == 2
    };
    training_job_testbed::cluster::wait_for_all(stage.pods(), "", leaving).await;
    let made = stage.proxy.calls().len();
    stage.create(job("a", 2)).await;
    stage.until("a", ConditionType::Created).await;
    let _nodes = stage.cluster.nodes(&stage.namespace).await;
    let new = stage.until_all_run("a", 2).await;
    assert!(old.iter().all(|pod| new[&pod.name_any()] != pod.uid().unwrap()));
    let since = &stage.proxy.calls()[made..];
    assert!(
        since.iter().all(|c| c.verb != "delete"),
        "the garbage collector deletes, not the operator"
    );
    let refused = since
        .iter()
        .filter(|c| c.resource == "pods" && c.code == Some(409))
        .count();
    assert!(refused <= 2, "{refused} tries too early");
    assert_eq!(
        stage.count_events("a", "FailedCreatePod").await,
        0,
        "waiting is no failure"
    );
    stage.succeed("a", 2).await;
    operator.expect_well();
}

#[tokio::test]
async fn deleted_jobs_and_pods_get_no_further_writes() {
    let stage = Stage::new("gone").await;
    let operator = stage.operator();
    // A pod that is deleted before the operator's deletion arrives.
    let delete = stage
        .proxy
        .fault(On::call("delete", "pods").named("a-worker-0"), Fault::Held);
    stage.create(cleaned(job("a", 2), "All")).await;
    stage.until_all_run("a", 2).await;
    stage.kubelet.succeeds("a-worker-0").await;
    stage.kubelet.succeeds(&deciding("a", 2)).await;
    delete.happened(1).await;
    stage.kubelet.finishes_deletion("a-worker-0").await;
    delete.lift();
    stage.until_pods("a", 0).await;
    stage.until("a", ConditionType::Succeeded).await;
    let codes = |verb, name: &str| -> Vec<_> {
        let calls = stage.proxy.calls();
        let mine = calls.iter().filter(|c| c.verb == verb && c.name == name);
        mine.filter_map(|c| c.code).collect()
    };
    assert_eq!(codes("delete", "a-worker-0")[0], 404);
    assert_eq!(stage.count_events("a", "FailedDeletePod").await, 0);

    // A job that is deleted before its status arrives.
    let status = stage
        .proxy
        .fault(On::call("patch", "mxjobs/status").named("b"), Fault::Held);
    stage.create(job("b", 1)).await;
    status.happened(1).await;
    stage.delete("b").await;
    stage.until_pods("b", 0).await;
    status.lift();
    stage.proxy.heal();
    stage.good_job().await;
    assert_eq!(codes("patch", "b"), [404], "and no second try");
    assert_eq!(codes("delete", "b-worker-0"), [0; 0]);
    stage.expect_no_harm();
    operator.expect_well();
}
