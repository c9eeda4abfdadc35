use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy},
};

use super::*;
use crate::Action;

/// A pod that is bound to a node.
async fn bound(client: &Client, name: &str) -> Pod {
    let mut pod = pod(name);
    pod.spec.as_mut().unwrap().node_name = Some("n1".to_owned());
    create_pod(client, &pod).await
}

fn steps(cluster: &Cluster, after: u64) -> Vec<(Action, String)> {
    cluster
        .changes(after)
        .iter()
        .map(|change| (change.action(), change.name().to_owned()))
        .collect()
}

#[tokio::test]
async fn preconditions_protect_a_successor() {
    let client = cluster().client("default");
    let made = create_pod(&client, &pod("a")).await;
    let with = |uid: Option<String>, resource_version: Option<String>| DeleteParams {
        preconditions: Some(Preconditions {
            uid,
            resource_version,
        }),
        ..DeleteParams::default()
    };
    let status = refusal(
        pods(&client)
            .delete("a", &with(Some("old".to_owned()), None))
            .await,
    );
    assert!(status.is_conflict());
    assert!(
        status
            .message
            .contains("the UID in the precondition (old) does not match"),
        "{}",
        status.message
    );
    let status = refusal(pods(&client).delete("a", &with(None, Some("1".to_owned()))).await);
    assert!(status.is_conflict());
    pods(&client)
        .delete("a", &with(made.uid(), made.resource_version()))
        .await
        .unwrap();
    assert!(refusal(pods(&client).delete("a", &DeleteParams::default()).await).is_not_found());
}

#[tokio::test(start_paused = true)]
async fn a_bound_pod_has_its_grace() {
    let cluster = cluster();
    let client = cluster.client("default");
    bound(&client, "a").await;
    let left = pods(&client)
        .delete("a", &DeleteParams::default())
        .await
        .unwrap()
        .left()
        .unwrap();
    let meta = serde_json::to_value(&left.metadata).unwrap();
    assert_eq!(meta["deletionTimestamp"], "2030-01-01T00:00:30Z");
    assert_eq!(meta["deletionGracePeriodSeconds"], 30);
    assert_eq!(meta["generation"], 2);
    // The same request again changes nothing. A shorter grace period moves the deadline.
    let before = cluster.resource_version();
    pods(&client).delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(cluster.resource_version(), before);
    let sooner = DeleteParams::default().grace_period(10);
    let left = pods(&client).delete("a", &sooner).await.unwrap().left().unwrap();
    let meta = serde_json::to_value(&left.metadata).unwrap();
    assert_eq!(meta["deletionTimestamp"], "2030-01-01T00:00:10Z");
    let before = cluster.resource_version();
    pods(&client)
        .delete("a", &DeleteParams::default().grace_period(0))
        .await
        .unwrap();
    assert!(cluster.get("pods", "default", "a").is_none());
    let a = || "a".to_owned();
    assert_eq!(
        steps(&cluster, before),
        [(Action::Modified, a()), (Action::Deleted, a())]
    );
}

#[tokio::test]
async fn unbound_and_finished_pods_go_at_once() {
    let cluster = cluster();
    let client = cluster.client("default");
    create_pod(&client, &pod("unbound")).await;
    bound(&client, "finished").await;
    let failed = json!({"status": {"phase": "Failed"}});
    pods(&client)
        .patch_status("finished", &PatchParams::default(), &Patch::Merge(&failed))
        .await
        .unwrap();
    for name in ["unbound", "finished"] {
        pods(&client)
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }
    assert!(cluster.list("pods", None).is_empty());
}

#[tokio::test]
async fn finalizers_hold_an_object() {
    let cluster = cluster();
    let client = cluster.client("default");
    let mut held = map("m");
    held.metadata.finalizers = Some(vec!["example.com/hold".to_owned()]);
    maps(&client).create(&PostParams::default(), &held).await.unwrap();
    let left = maps(&client)
        .delete("m", &DeleteParams::default())
        .await
        .unwrap()
        .left()
        .unwrap();
    assert!(left.metadata.deletion_timestamp.is_some());
    let more = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/late"]}});
    let pp = PatchParams::default();
    let status = refusal(maps(&client).patch("m", &pp, &Patch::Merge(&more)).await);
    assert_eq!(
        causes(&status),
        [("FieldValueForbidden".to_owned(), "metadata.finalizers".to_owned())]
    );
    let before = cluster.resource_version();
    let none = json!({"metadata": {"finalizers": null}});
    maps(&client).patch("m", &pp, &Patch::Merge(&none)).await.unwrap();
    assert_eq!(steps(&cluster, before), [(Action::Deleted, "m".to_owned())]);
    assert!(cluster.get("configmaps", "default", "m").is_none());
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector() {
    let cluster = cluster();
    let client = cluster.client("default");
    for name in ["a", "b", "c"] {
        create_pod(&client, &pod(name)).await;
    }
    let chosen = ListParams::default().labels("app in (a,c)");
    let gone = pods(&client)
        .delete_collection(&DeleteParams::default(), &chosen)
        .await
        .unwrap();
    assert_eq!(gone.left().unwrap().items.len(), 2);
    let left: Vec<String> = cluster
        .list("pods", None)
        .iter()
        .map(|pod| pod.name().to_owned())
        .collect();
    assert_eq!(left, ["b"]);
}

/// A map that owns another one.
async fn family(client: &Client) -> ConfigMap {
    let owner = maps(client)
        .create(&PostParams::default(), &map("owner"))
        .await
        .unwrap();
    let mut child = map("child");
    let mut reference = owner.controller_owner_ref(&()).unwrap();
    reference.block_owner_deletion = Some(true);
    child.metadata.owner_references = Some(vec![reference]);
    maps(client).create(&PostParams::default(), &child).await.unwrap();
    owner
}

fn delete_with(policy: PropagationPolicy) -> DeleteParams {
    DeleteParams {
        propagation_policy: Some(policy),
        ..DeleteParams::default()
    }
}

#[tokio::test]
async fn dependents_follow_their_owner_in_the_background() {
    let cluster = cluster();
    let client = cluster.client("default");
    family(&client).await;
    let before = cluster.resource_version();
    maps(&client)
        .delete("owner", &DeleteParams::default())
        .await
        .unwrap();
    let gone = |name: &str| (Action::Deleted, name.to_owned());
    assert_eq!(steps(&cluster, before), [gone("owner"), gone("child")]);
}

#[tokio::test]
async fn dependents_go_before_their_owner_in_the_foreground() {
    let cluster = cluster();
    let client = cluster.client("default");
    let owner = family(&client).await;
    let mut guard = bound(&client, "guard").await;
    let mut reference = owner.owner_ref(&()).unwrap();
    reference.block_owner_deletion = Some(true);
    guard.metadata.owner_references = Some(vec![reference]);
    pods(&client)
        .replace("guard", &PostParams::default(), &guard)
        .await
        .unwrap();
    maps(&client)
        .delete("owner", &delete_with(PropagationPolicy::Foreground))
        .await
        .unwrap();
    // The child is gone, the pod has its grace period, and the owner waits for the pod.
    assert!(cluster.get("configmaps", "default", "child").is_none());
    assert!(cluster.get("pods", "default", "guard").unwrap().is_deleting());
    let waiting = cluster.get("configmaps", "default", "owner").unwrap();
    assert_eq!(waiting["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    pods(&client)
        .delete("guard", &DeleteParams::default().grace_period(0))
        .await
        .unwrap();
    assert!(cluster.get("configmaps", "default", "owner").is_none());
}

#[tokio::test]
async fn orphans_lose_the_reference_only() {
    let cluster = cluster();
    let client = cluster.client("default");
    family(&client).await;
    maps(&client)
        .delete("owner", &delete_with(PropagationPolicy::Orphan))
        .await
        .unwrap();
    assert!(cluster.get("configmaps", "default", "owner").is_none());
    let child = cluster.get("configmaps", "default", "child").unwrap();
    assert_eq!(child["metadata"].get("ownerReferences"), None);
}

#[tokio::test]
async fn owners_are_judged_by_uid_place_and_kind() {
    let cluster = cluster();
    let client = cluster.client("default");
    let owner = maps(&client)
        .create(&PostParams::default(), &map("owner"))
        .await
        .unwrap();
    let child = async |name: &str, kind: &str, owner_name: &str, uid: &str| {
        let mut child = map(name);
        child.metadata.owner_references = Some(vec![typed(json!({
            "apiVersion": "v1", "kind": kind, "name": owner_name, "uid": uid,
        }))]);
        maps(&client)
            .create(&PostParams::default(), &child)
            .await
            .unwrap();
        cluster.get("configmaps", "default", name).is_some()
    };
    let uid = owner.uid().unwrap();
    assert!(child("good", "ConfigMap", "owner", &uid).await);
    assert!(!child("wrong-uid", "ConfigMap", "owner", "other").await);
    assert!(!child("wrong-name", "ConfigMap", "nobody", &uid).await);
    assert!(child("unknown-kind", "Riddle", "owner", &uid).await);
    // An owner in another namespace counts as missing.
    let space: Namespace = typed(json!({"metadata": {"name": "other"}}));
    Api::<Namespace>::all(client.clone())
        .create(&PostParams::default(), &space)
        .await
        .unwrap();
    let mut stray = map("stray");
    stray.metadata.owner_references = Some(vec![owner.owner_ref(&()).unwrap()]);
    Api::<ConfigMap>::namespaced(client.clone(), "other")
        .create(&PostParams::default(), &stray)
        .await
        .unwrap();
    assert!(cluster.get("configmaps", "other", "stray").is_none());
    // One living owner is enough. The reference to the missing owner is removed.
    let mut both = map("both");
    let mut gone = owner.owner_ref(&()).unwrap();
    gone.uid = "gone".to_owned();
    both.metadata.owner_references = Some(vec![owner.owner_ref(&()).unwrap(), gone]);
    maps(&client).create(&PostParams::default(), &both).await.unwrap();
    let stored = cluster.get("configmaps", "default", "both").unwrap();
    assert_eq!(stored["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn the_collector_can_be_stepped() {
    let cluster = Cluster::builder().manual_collection().build();
    let client = cluster.client("default");
    family(&client).await;
    maps(&client)
        .delete("owner", &DeleteParams::default())
        .await
        .unwrap();
    assert!(cluster.get("configmaps", "default", "child").is_some());
    while cluster.collect_garbage_step() {}
    assert!(cluster.get("configmaps", "default", "child").is_none());
}

#[tokio::test]
async fn a_terminating_namespace_takes_nothing_in() {
    let cluster = cluster();
    let client = cluster.client("other");
    let spaces: Api<Namespace> = Api::all(client.clone());
    let space: Namespace = typed(json!({"metadata": {"name": "other"}}));
    spaces.create(&PostParams::default(), &space).await.unwrap();
    create_pod(&client, &pod("loose")).await;
    bound(&client, "busy").await;
    spaces.delete("other", &DeleteParams::default()).await.unwrap();
    let there = spaces.get("other").await.unwrap();
    assert_eq!(there.status.unwrap().phase.as_deref(), Some("Terminating"));
    assert!(cluster.get("pods", "other", "loose").is_none());
    let status = refusal(pods(&client).create(&PostParams::default(), &pod("late")).await);
    assert!(status.is_forbidden());
    assert_eq!(
        causes(&status),
        [("NamespaceTerminating".to_owned(), "metadata.namespace".to_owned())]
    );
    pods(&client)
        .delete("busy", &DeleteParams::default().grace_period(0))
        .await
        .unwrap();
    assert!(cluster.get("namespaces", "", "other").is_none());
    let status = refusal(pods(&client).create(&PostParams::default(), &pod("late")).await);
    assert_eq!(
        (status.code, status.message.as_str()),
        (404, "namespaces \"other\" not found")
    );
    let lenient = Cluster::builder().auto_namespaces().build();
    create_pod(&lenient.client("anywhere"), &pod("a")).await;
    assert!(lenient.get("namespaces", "", "anywhere").is_some());
}
