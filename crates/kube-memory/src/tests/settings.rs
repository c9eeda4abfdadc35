use kube::{
    Resource,
    api::{DeleteParams, PostParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};

use super::*;
use crate::Description;

#[tokio::test(start_paused = true)]
async fn times_are_those_of_the_clock() {
    let client = cluster().client("default");
    let mut bound = pod("a");
    bound.spec.as_mut().unwrap().node_name = Some("n1".to_owned());
    let made = create_pod(&client, &bound).await;
    let made = serde_json::to_value(&made.metadata).unwrap();
    assert_eq!(made["creationTimestamp"], "2030-01-01T00:00:00Z");
    // A later, shorter grace period begins at the first deletion too.
    for (grace_seconds, deadline) in [(None, "2030-01-01T00:00:30Z"), (Some(10), "2030-01-01T00:00:10Z")] {
        let params = DeleteParams {
            grace_period_seconds: grace_seconds,
            ..DeleteParams::default()
        };
        let left = pods(&client).delete("a", &params).await.unwrap().left().unwrap();
        let left = serde_json::to_value(&left.metadata).unwrap();
        assert_eq!(left["deletionTimestamp"], deadline);
        tokio::time::advance(Duration::from_secs(5)).await;
    }
}

#[tokio::test]
async fn the_collector_deletes_only_in_steps_if_it_is_manual() {
    let cluster = Cluster::builder().manual_collection().build();
    let maps = maps(&cluster.client("default"));
    let params = PostParams::default();
    let owner = maps.create(&params, &map("owner")).await.unwrap();
    let mut child = map("child");
    child.metadata.owner_references = Some(vec![owner.controller_owner_ref(&()).unwrap()]);
    maps.create(&params, &child).await.unwrap();
    maps.delete("owner", &DeleteParams::default()).await.unwrap();
    assert!(cluster.get("configmaps", "default", "child").is_some());
    while cluster.collect_garbage_step() {}
    assert!(cluster.get("configmaps", "default", "child").is_none());
}

#[tokio::test]
async fn a_missing_namespace_is_created_if_namespaces_are_automatic() {
    let cluster = Cluster::builder().auto_namespaces().build();
    create_pod(&cluster.client("anywhere"), &pod("a")).await;
    assert!(cluster.get("namespaces", "", "anywhere").is_some());
}

#[tokio::test]
async fn an_installed_kind_needs_no_definition() {
    let cluster = cluster();
    cluster.install(Description::new("example.com", "v1", "Thing", "things").with_status());
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Thing"));
    let things: Api<DynamicObject> = Api::default_namespaced_with(cluster.client("default"), &resource);
    let thing = typed(json!({
        "apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"anything": [1]},
    }));
    let made = things.create(&PostParams::default(), &thing).await.unwrap();
    assert_eq!(made.data["spec"], json!({"anything": [1]}));
    things.delete("t", &DeleteParams::default()).await.unwrap();
    assert!(cluster.list("things", None).is_empty());
}
