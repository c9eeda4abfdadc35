use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};

use super::*;
use crate::Description;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(super) fn definition() -> Value {
    let schema = json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["replicas"],
                "properties": {
                    "replicas": {"type": "integer", "minimum": 0, "maximum": 5},
                    "mode": {"type": "string", "enum": ["A", "B"], "default": "A"},
                    "policy": {
                        "type": "object",
                        "default": {},
                        "properties": {"limit": {"type": "integer", "default": 6}},
                    },
                    "name": {"type": "string", "maxLength": 4, "pattern": "^[a-z]+$"},
                    "port": {"x-kubernetes-int-or-string": true},
                    "tags": {"type": "array", "maxItems": 2, "items": {"type": "string"}},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    "parts": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
                        },
                    },
                },
            },
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    });
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage,
            "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [version("v1", true), version("v2", false)],
        },
    })
}

fn things(client: &Client, version: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", version, "Thing"));
    Api::default_namespaced_with(client.clone(), &resource)
}

fn thing(spec: Value) -> DynamicObject {
    typed(json!({
        "apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec,
    }))
}

async fn installed() -> (Cluster, Client) {
    let cluster = cluster();
    let client = cluster.client("default");
    let (code, _) = send(
        &client,
        Method::POST,
        DEFINITIONS,
        "application/json",
        &definition(),
    )
    .await;
    assert_eq!(code, 201);
    (cluster, client)
}

#[tokio::test]
async fn a_definition_is_served_and_has_the_condition() {
    let (cluster, client) = installed().await;
    let stored = cluster
        .get("customresourcedefinitions", "", "things.example.com")
        .unwrap();
    assert_eq!(stored["status"]["conditions"][1]["type"], "Established");
    assert_eq!(stored["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(stored["spec"]["names"]["listKind"], "ThingList");
    let made = things(&client, "v1")
        .create(&PostParams::default(), &thing(json!({"replicas": 1})))
        .await
        .unwrap();
    // Another served version shows the same object under its own apiVersion.
    let other = things(&client, "v2").get("t").await.unwrap();
    assert_eq!(other.types.unwrap().api_version, "example.com/v2");
    assert_eq!(other.data, made.data);
    let listed = things(&client, "v2").list(&ListParams::default()).await.unwrap();
    assert_eq!(
        listed.items[0].types.as_ref().unwrap().api_version,
        "example.com/v2"
    );
    let mut broken = definition();
    broken["metadata"]["name"] = json!("x.example.com");
    broken["spec"]["versions"][1]["storage"] = json!(true);
    let (code, status) = send(&client, Method::POST, DEFINITIONS, "application/json", &broken).await;
    assert_eq!(code, 422);
    let fields: Vec<String> = causes(&typed(status))
        .into_iter()
        .map(|(_, field)| field)
        .collect();
    assert_eq!(fields, ["metadata.name", "spec.versions"]);
}

#[tokio::test]
async fn defaults_are_filled_in_and_unknown_members_dropped() {
    let (_, client) = installed().await;
    let spec = json!({
        "replicas": 2, "extra": 1, "free": {"any": [1]}, "mode": null, "port": "http",
        "parts": [{"name": "p", "odd": true}],
    });
    let made = things(&client, "v1")
        .create(&PostParams::default(), &thing(spec))
        .await
        .unwrap();
    assert_eq!(
        made.data["spec"],
        json!({
            "replicas": 2, "free": {"any": [1]}, "mode": "A", "policy": {"limit": 6}, "port": "http",
            "parts": [{"name": "p"}],
        })
    );
    let mut strict = thing(json!({"replicas": 2, "extra": 1}));
    strict.metadata.name = Some("u".to_owned());
    let path = "/apis/example.com/v1/namespaces/default/things?fieldValidation=Strict";
    let body = serde_json::to_value(&strict).unwrap();
    let (code, status) = send(&client, Method::POST, path, "application/json", &body).await;
    assert_eq!(
        (code, &status["message"]),
        (
            400,
            &json!(
                "Thing in version \"v1\" cannot be handled as a Thing: strict decoding error: unknown field \"spec.extra\""
            )
        )
    );
}

#[tokio::test]
async fn the_schema_is_enforced() {
    let (_, client) = installed().await;
    let refused = async |spec: Value| {
        let result = things(&client, "v1")
            .create(&PostParams::default(), &thing(spec))
            .await;
        causes(&refusal(result))
    };
    let cause = |reason: &str, field: &str| (reason.to_owned(), field.to_owned());
    assert_eq!(
        refused(json!({})).await,
        [cause("FieldValueRequired", "spec.replicas")]
    );
    assert_eq!(
        refused(json!({"replicas": "1"})).await,
        [cause("FieldValueTypeInvalid", "spec.replicas")]
    );
    assert_eq!(
        refused(json!({"replicas": null})).await,
        [cause("FieldValueRequired", "spec.replicas")],
        "a null that may not be there is not there"
    );
    assert_eq!(
        refused(json!({"replicas": -1})).await,
        [cause("FieldValueInvalid", "spec.replicas")]
    );
    assert_eq!(
        refused(json!({"replicas": 6})).await,
        [cause("FieldValueInvalid", "spec.replicas")]
    );
    assert_eq!(
        refused(json!({"replicas": 1, "mode": "C", "name": "TOOLONG", "tags": ["a", "b", "c"], "port": 1.5}))
            .await,
        [
            cause("FieldValueNotSupported", "spec.mode"),
            cause("FieldValueTooLong", "spec.name"),
            cause("FieldValueTypeInvalid", "spec.port"),
            cause("FieldValueTooMany", "spec.tags"),
        ]
    );
    assert_eq!(
        refused(json!({"replicas": 1, "parts": [{"name": "a"}, {"name": "a"}]})).await,
        [cause("FieldValueDuplicate", "spec.parts[1]")]
    );
}

#[tokio::test]
async fn status_and_generation_of_custom_objects() {
    let (_, client) = installed().await;
    let api = things(&client, "v1");
    let mut first = thing(json!({"replicas": 1}));
    first.data["status"] = json!({"phase": "Early"});
    let made = api.create(&PostParams::default(), &first).await.unwrap();
    assert_eq!(made.data.get("status"), None, "a creation sets no status");
    assert_eq!(made.metadata.generation, Some(1));
    let patch = json!({
        "metadata": {"labels": {"l": "1"}}, "spec": {"replicas": 3}, "status": {"phase": "Running"},
    });
    let pp = PatchParams::default();
    let after = api.patch_status("t", &pp, &Patch::Merge(&patch)).await.unwrap();
    assert_eq!(after.data["status"], json!({"phase": "Running"}));
    assert_eq!(after.data["spec"]["replicas"], 1);
    assert!(after.labels().is_empty());
    assert_eq!(after.metadata.generation, Some(1));
    let after = api
        .patch(
            "t",
            &pp,
            &Patch::Merge(&json!({"spec": {"replicas": 3}, "status": null})),
        )
        .await
        .unwrap();
    assert_eq!(after.data["status"], json!({"phase": "Running"}));
    assert_eq!(after.metadata.generation, Some(2));
    let label = json!({"metadata": {"labels": {"l": "1"}}});
    assert_eq!(
        api.patch("t", &pp, &Patch::Merge(&label))
            .await
            .unwrap()
            .metadata
            .generation,
        Some(2)
    );
    let status = refusal(api.patch("t", &pp, &Patch::Strategic(&label)).await);
    assert_eq!(status.code, 415);
    let mut unversioned = after.clone();
    unversioned.metadata.resource_version = None;
    assert!(refusal(api.replace("t", &PostParams::default(), &unversioned).await).is_invalid());
}

#[tokio::test]
async fn applied_lists_merge_by_the_keys_of_the_schema() {
    let (_, client) = installed().await;
    let api = things(&client, "v1");
    let apply = async |manager: &str, parts: Value| {
        let config = thing(json!({"replicas": 1, "parts": parts}));
        let after = api
            .patch("t", &PatchParams::apply(manager), &Patch::Apply(&config))
            .await
            .unwrap();
        after.data["spec"]["parts"].clone()
    };
    apply("one", json!([{"name": "a", "size": 1}, {"name": "b"}])).await;
    assert_eq!(
        apply("two", json!([{"name": "c"}])).await,
        json!([{"name": "a", "size": 1}, {"name": "b"}, {"name": "c"}])
    );
    assert_eq!(
        apply("one", json!([{"name": "a"}])).await,
        json!([{"name": "a"}, {"name": "c"}])
    );
}

#[tokio::test]
async fn a_definition_goes_with_its_objects() {
    let (cluster, client) = installed().await;
    let mut held = thing(json!({"replicas": 1}));
    held.metadata.finalizers = Some(vec!["example.com/hold".to_owned()]);
    let api = things(&client, "v1");
    api.create(&PostParams::default(), &held).await.unwrap();
    let path = format!("{DEFINITIONS}/things.example.com");
    assert_eq!(
        send(&client, Method::DELETE, &path, "", &Value::Null).await.0,
        200
    );
    assert!(
        cluster
            .get("customresourcedefinitions", "", "things.example.com")
            .is_some()
    );
    assert!(api.get("t").await.unwrap().metadata.deletion_timestamp.is_some());
    let free = json!({"metadata": {"finalizers": null}});
    api.patch("t", &PatchParams::default(), &Patch::Merge(&free))
        .await
        .unwrap();
    assert!(
        cluster
            .get("customresourcedefinitions", "", "things.example.com")
            .is_none()
    );
    // The group is no longer served, so the response is plain text instead of a Status.
    assert_eq!(refusal(api.get("t").await).code, 404);
    // The kind can come back, empty.
    send(
        &client,
        Method::POST,
        DEFINITIONS,
        "application/json",
        &definition(),
    )
    .await;
    assert!(api.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_described_kind_needs_no_definition() {
    let cluster = cluster();
    cluster.install(Description::new("example.com", "v1", "Thing", "things").with_status());
    let client = cluster.client("default");
    let api = things(&client, "v1");
    let made = api
        .create(&PostParams::default(), &thing(json!({"anything": [1]})))
        .await
        .unwrap();
    assert_eq!(made.data["spec"], json!({"anything": [1]}));
    api.delete("t", &DeleteParams::default()).await.unwrap();
    assert!(cluster.list("things", None).is_empty());
}
