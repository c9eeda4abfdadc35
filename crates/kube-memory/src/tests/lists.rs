use k8s_openapi::api::core::v1::Namespace;
use kube::{
    ResourceExt,
    api::{ListParams, PartialObjectMeta, PostParams},
};

use super::*;

#[tokio::test]
async fn selectors_choose() {
    let client = cluster().client("default");
    for (name, labels) in [
        ("a", json!({"tier": "web", "job": "x"})),
        ("b", json!({"tier": "db"})),
        ("c", json!({})),
    ] {
        let mut pod = pod(name);
        pod.metadata.labels = Some(typed(labels));
        create_pod(&client, &pod).await;
    }
    let names = async |lp: ListParams| -> Vec<String> {
        pods(&client)
            .list(&lp)
            .await
            .unwrap()
            .items
            .iter()
            .map(ResourceExt::name_any)
            .collect()
    };
    let labels = |text: &str| ListParams::default().labels(text);
    assert_eq!(names(labels("tier=web")).await, ["a"]);
    assert_eq!(names(labels("tier!=web")).await, ["b", "c"]);
    assert_eq!(names(labels("tier in (web, db)")).await, ["a", "b"]);
    assert_eq!(names(labels("tier notin (web),job!=x")).await, ["b", "c"]);
    assert_eq!(names(labels("tier")).await, ["a", "b"]);
    assert_eq!(names(labels("!tier")).await, ["c"]);
    assert_eq!(names(labels("tier==db,tier")).await, ["b"]);
    let fields = |text: &str| ListParams::default().fields(text);
    assert_eq!(names(fields("metadata.name=b")).await, ["b"]);
    assert_eq!(
        names(fields("metadata.name!=b,status.phase=Pending")).await,
        ["a", "c"]
    );
    assert_eq!(names(fields("spec.nodeName=")).await, ["a", "b", "c"]);
    assert_eq!(names(fields("spec.nodeName=n")).await, Vec::<String>::new());
    assert_eq!(
        refusal(pods(&client).list(&fields("spec.image=x")).await).code,
        400
    );
    assert_eq!(refusal(pods(&client).list(&labels("a in b")).await).code, 400);
}

#[tokio::test]
async fn pages_show_one_version() {
    let cluster = cluster();
    let client = cluster.client("default");
    for name in ["a", "b", "c", "d"] {
        maps(&client)
            .create(&PostParams::default(), &map(name))
            .await
            .unwrap();
    }
    let first = maps(&client).list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(first.metadata.remaining_item_count, Some(2));
    let token = first.metadata.continue_.clone().unwrap();
    // Changes between the pages do not appear in them.
    maps(&client).delete("c", &Default::default()).await.unwrap();
    maps(&client)
        .create(&PostParams::default(), &map("bb"))
        .await
        .unwrap();
    let second = maps(&client)
        .list(&ListParams::default().continue_token(&token))
        .await
        .unwrap();
    let names: Vec<String> = first
        .items
        .iter()
        .chain(&second.items)
        .map(ResourceExt::name_any)
        .collect();
    assert_eq!(names, ["a", "b", "c", "d"]);
    assert_eq!(first.metadata.resource_version, second.metadata.resource_version);
    assert_eq!(second.metadata.continue_, None);

    cluster.compact();
    let status = refusal(
        maps(&client)
            .list(&ListParams::default().continue_token(&token))
            .await,
    );
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    let inconsistent = status.metadata.unwrap().continue_.unwrap();
    let rest = maps(&client)
        .list(&ListParams::default().continue_token(&inconsistent))
        .await
        .unwrap();
    assert_eq!(
        rest.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>(),
        ["bb", "d"]
    );
    assert_eq!(
        refusal(
            maps(&client)
                .list(&ListParams::default().continue_token("?"))
                .await
        )
        .code,
        400
    );
    let (code, status) = send(
        &client,
        Method::GET,
        "/api/v1/configmaps?resourceVersion=100000",
        "",
        &Value::Null,
    )
    .await;
    assert_eq!(
        (code, &status["details"]["causes"][0]["reason"]),
        (504, &json!("ResourceVersionTooLarge"))
    );
}

#[tokio::test]
async fn lists_cross_namespaces_and_can_be_metadata_only() {
    let cluster = cluster();
    let client = cluster.client("default");
    let space: Namespace = typed(json!({"metadata": {"name": "other"}}));
    Api::<Namespace>::all(client.clone())
        .create(&PostParams::default(), &space)
        .await
        .unwrap();
    create_pod(&client, &pod("a")).await;
    let there: Api<Pod> = Api::namespaced(client.clone(), "other");
    there.create(&PostParams::default(), &pod("b")).await.unwrap();
    let all: Api<PartialObjectMeta<Pod>> = Api::all(client.clone());
    let found = all.list_metadata(&ListParams::default()).await.unwrap();
    let places: Vec<_> = found
        .items
        .iter()
        .map(|meta| (meta.namespace().unwrap(), meta.name_any()))
        .collect();
    assert_eq!(
        places,
        [("default".into(), "a".into()), ("other".into(), "b".into())]
    );
    let (_, list) = send(&client, Method::GET, "/api/v1/pods", "", &Value::Null).await;
    assert_eq!(
        (&list["kind"], list["items"].as_array().unwrap().len()),
        (&json!("PodList"), 2)
    );
    assert_eq!(
        list["items"][0].get("kind"),
        None,
        "items of built-in lists have no kind"
    );
    let status = refusal(
        Api::<Pod>::namespaced(client, "missing")
            .create(&PostParams::default(), &pod("a"))
            .await,
    );
    assert_eq!(
        (status.code, status.message.as_str()),
        (404, "namespaces \"missing\" not found")
    );
}

#[tokio::test]
async fn discovery_lists_the_served_kinds() {
    let client = cluster().client("default");
    assert_eq!(client.apiserver_version().await.unwrap().major, "1");
    let groups = client.list_api_groups().await.unwrap();
    let names: Vec<String> = groups.groups.into_iter().map(|group| group.name).collect();
    assert_eq!(
        names,
        [
            "apiextensions.k8s.io",
            "authentication.k8s.io",
            "authorization.k8s.io",
            "coordination.k8s.io",
            "events.k8s.io"
        ]
    );
    let leases = client
        .list_api_group_resources("coordination.k8s.io/v1")
        .await
        .unwrap();
    assert_eq!(
        (
            leases.resources[0].name.as_str(),
            leases.resources[0].kind.as_str()
        ),
        ("leases", "Lease")
    );
    assert_eq!(client.list_core_api_versions().await.unwrap().versions, ["v1"]);
    let core = client.list_core_api_resources("v1").await.unwrap();
    assert!(
        core.resources
            .iter()
            .any(|resource| resource.name == "pods/status")
    );
    let gvk = kube::core::GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease");
    let (found, _) = kube::discovery::pinned_kind(&client, &gvk).await.unwrap();
    assert_eq!(found.plural, "leases");
    // A real server responds without a `Status` too.
    let unknown = refusal(client.list_api_group_resources("example.com/v1").await);
    assert_eq!((unknown.code, unknown.is_not_found()), (404, false));
}
