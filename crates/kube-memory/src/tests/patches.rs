use kube::{
    ResourceExt,
    api::{Patch, PatchParams, PostParams},
};

use super::*;

async fn with_map(client: &Client) -> ConfigMap {
    maps(client)
        .create(&PostParams::default(), &map("m"))
        .await
        .unwrap()
}

fn data(map: &ConfigMap) -> Value {
    serde_json::to_value(&map.data).unwrap()
}

#[tokio::test]
async fn a_json_patch_does_all_or_nothing() {
    let cluster = cluster();
    let client = cluster.client("default");
    let before = with_map(&client).await;
    let patch = |value: Value| Patch::Json::<()>(typed(value));
    let pp = PatchParams::default();
    let good = patch(json!([
        {"op": "test", "path": "/data/k", "value": "v"},
        {"op": "add", "path": "/data/n", "value": "new"},
    ]));
    let after = maps(&client).patch("m", &pp, &good).await.unwrap();
    assert_eq!(data(&after), json!({"k": "v", "n": "new"}));
    assert_ne!(after.resource_version(), before.resource_version());
    let bad = patch(json!([
        {"op": "remove", "path": "/data/n"},
        {"op": "test", "path": "/data/k", "value": "other"},
    ]));
    let status = refusal(maps(&client).patch("m", &pp, &bad).await);
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    assert_eq!(maps(&client).get("m").await.unwrap(), after);
    let path = "/api/v1/namespaces/default/configmaps/m";
    let (code, _) = send(
        &client,
        Method::PATCH,
        path,
        "application/json-patch+json",
        &json!({"op": 1}),
    )
    .await;
    assert_eq!(code, 400);
    let whole = json!([{"op": "replace", "path": "", "value": 7}]);
    assert_eq!(
        send(
            &client,
            Method::PATCH,
            path,
            "application/json-patch+json",
            &whole
        )
        .await
        .0,
        422
    );
}

#[tokio::test]
async fn a_merge_patch_merges_and_may_name_the_version() {
    let client = cluster().client("default");
    let first = with_map(&client).await;
    let pp = PatchParams::default();
    let patch = json!({"data": {"k": null, "n": "1"}, "metadata": {"labels": {"l": "1"}}});
    let second = maps(&client)
        .patch("m", &pp, &Patch::Merge(&patch))
        .await
        .unwrap();
    assert_eq!(data(&second), json!({"n": "1"}));
    assert_eq!(second.labels()["l"], "1");
    let old = json!({"metadata": {"resourceVersion": first.resource_version()}, "data": {"n": "2"}});
    assert!(refusal(maps(&client).patch("m", &pp, &Patch::Merge(&old)).await).is_conflict());
    let same = maps(&client)
        .patch("m", &pp, &Patch::Merge(&json!({"data": {"n": "1"}})))
        .await
        .unwrap();
    assert_eq!(same.resource_version(), second.resource_version());
    let uid = json!({"metadata": {"uid": "other"}});
    assert!(refusal(maps(&client).patch("m", &pp, &Patch::Merge(&uid)).await).is_invalid());
    let path = "/api/v1/namespaces/default/configmaps/m";
    assert_eq!(
        send(&client, Method::PATCH, path, "text/plain", &json!({}))
            .await
            .0,
        415
    );
    assert_eq!(
        send(
            &client,
            Method::PATCH,
            path,
            "application/merge-patch+json",
            &json!(3)
        )
        .await
        .0,
        400
    );
}

#[tokio::test]
async fn a_strategic_patch_merges_lists_by_key() {
    let client = cluster().client("default");
    create_pod(&client, &pod("a")).await;
    let pp = PatchParams::default();
    let conditions = |value: Value| json!({"status": {"conditions": value}});
    let add = conditions(json!([
        {"type": "Ready", "status": "False"},
        {"type": "PodScheduled", "status": "True"},
    ]));
    pods(&client)
        .patch_status("a", &pp, &Patch::Strategic(&add))
        .await
        .unwrap();
    let change = conditions(json!([
        {"type": "Ready", "status": "True"},
        {"type": "PodScheduled", "$patch": "delete"},
    ]));
    let after = pods(&client)
        .patch_status("a", &pp, &Patch::Strategic(&change))
        .await
        .unwrap();
    let found = serde_json::to_value(after.status.unwrap().conditions).unwrap();
    assert_eq!(found, json!([{"type": "Ready", "status": "True"}]));
    let image = json!({"spec": {"containers": [{"name": "main", "image": "image:2"}]}});
    let after = pods(&client)
        .patch("a", &pp, &Patch::Strategic(&image))
        .await
        .unwrap();
    let container = &after.spec.unwrap().containers[0];
    assert_eq!(container.image.as_deref(), Some("image:2"));
    assert_eq!(
        container.image_pull_policy.as_deref(),
        Some("IfNotPresent"),
        "the rest of it stays"
    );
    let keyless = json!({"spec": {"containers": [{"image": "image:2"}]}});
    assert_eq!(
        refusal(pods(&client).patch("a", &pp, &Patch::Strategic(&keyless)).await).code,
        500
    );
}

#[tokio::test]
async fn an_apply_removes_fields_that_it_no_longer_sends() {
    let cluster = cluster();
    let client = cluster.client("default");
    let apply = async |manager: &str, force: bool, data: Value| {
        let mut pp = PatchParams::apply(manager);
        pp.force = force;
        let config =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data});
        maps(&client).patch("m", &pp, &Patch::Apply(&config)).await
    };
    assert_eq!(
        data(&apply("one", false, json!({"a": "1", "b": "1"})).await.unwrap()),
        json!({"a": "1", "b": "1"})
    );
    assert_eq!(
        data(&apply("two", false, json!({"b": "1", "c": "1"})).await.unwrap())["c"],
        "1"
    );
    // `b` is kept, because the second applier owns it too.
    assert_eq!(
        data(&apply("one", false, json!({"a": "2"})).await.unwrap()),
        json!({"a": "2", "b": "1", "c": "1"})
    );
    let status = refusal(apply("two", false, json!({"a": "3"})).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert_eq!(
        causes(&status),
        [("FieldManagerConflict".to_owned(), ".data.a".to_owned())]
    );
    assert_eq!(
        data(&apply("two", true, json!({"a": "3"})).await.unwrap()),
        json!({"a": "3"})
    );
    // The first applier has lost `a`, so it cannot remove it any more.
    assert_eq!(
        data(&apply("one", false, json!({})).await.unwrap()),
        json!({"a": "3"})
    );
    let before = cluster.resource_version();
    apply("two", false, json!({"a": "3"})).await.unwrap();
    assert_eq!(cluster.resource_version(), before);
    // Other writes own nothing: fields that a patch added are kept by an apply.
    let added = json!({"data": {"z": "26"}});
    maps(&client)
        .patch("m", &PatchParams::default(), &Patch::Merge(&added))
        .await
        .unwrap();
    assert_eq!(
        data(&apply("two", false, json!({})).await.unwrap()),
        json!({"z": "26"})
    );
}
