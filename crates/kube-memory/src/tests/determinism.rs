use std::sync::Arc;

use kube::{
    Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use parking_lot::Mutex;
use proptest::prelude::*;

use super::*;

/// Runs a few lifecycles with rejected requests among them, and returns their log.
async fn script(seed: u64) -> String {
    let cluster = Cluster::builder()
        .seed(seed)
        .clock(|| Timestamp::from_second(START).unwrap())
        .build();
    let client = cluster.client("default");
    let pp = PatchParams::default();
    for round in 0..5 {
        let name = format!("job-{round}");
        let owner = maps(&client)
            .create(&PostParams::default(), &map(&name))
            .await
            .unwrap();
        let mut worker = pod("w");
        worker.metadata.name = None;
        worker.metadata.generate_name = Some(format!("{name}-"));
        worker.metadata.owner_references = Some(vec![owner.controller_owner_ref(&()).unwrap()]);
        for _ in 0..3 {
            let made = create_pod(&client, &worker).await;
            let running = json!({"status": {"phase": "Running"}});
            let name = made.metadata.name.unwrap();
            pods(&client)
                .patch_status(&name, &pp, &Patch::Merge(&running))
                .await
                .unwrap();
        }
        assert!(
            maps(&client)
                .create(&PostParams::default(), &map(&name))
                .await
                .is_err()
        );
        maps(&client)
            .delete(&name, &DeleteParams::foreground())
            .await
            .unwrap();
    }
    let lines: Vec<String> = cluster
        .changes(0)
        .iter()
        .map(|change| change.to_string())
        .collect();
    assert!(cluster.list("pods", None).is_empty());
    lines.join("\n")
}

#[tokio::test]
async fn the_same_requests_leave_the_same_log() {
    let first = script(7).await;
    assert_eq!(first, script(7).await);
    assert_ne!(first, script(8).await, "the seed shows in names and UIDs");
    assert_eq!(first.lines().count(), 2 + 5 * (1 + 3 * 2 + 3 * 2 + 2));
}

#[tokio::test]
async fn an_observer_sees_each_change_when_it_is_stored() {
    let cluster = cluster();
    let client = cluster.client("default");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    cluster.on_change(move |view, change| {
        assert_eq!(view.resource_version(), change.resource_version());
        let stored = view.get(change.plural(), change.namespace(), change.name());
        assert_eq!(stored.is_some(), change.action() != crate::Action::Deleted);
        if let Some(stored) = stored {
            assert_eq!(stored.value(), change.object().value());
            assert_eq!(view.by_uid(stored.uid()).unwrap().name(), change.name());
        }
        log.lock()
            .push(format!("{} {}", change.action().as_str(), change.name()));
    });
    maps(&client)
        .create(&PostParams::default(), &map("m"))
        .await
        .unwrap();
    maps(&client).delete("m", &DeleteParams::default()).await.unwrap();
    assert_eq!(*seen.lock(), ["ADDED m", "DELETED m"]);
}

fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        Just("metadata"),
        Just("name"),
        Just("spec"),
        Just("status"),
        Just("labels"),
        Just("finalizers"),
        Just("ownerReferences"),
        Just("containers"),
        Just("ports"),
        Just("conditions"),
        Just("$patch"),
        Just("resourceVersion"),
        Just("deletionTimestamp"),
        Just("versions"),
        Just("generation"),
        Just("type"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z$/.%é-]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..5).prop_map(|members| Value::Object(
                members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
            )),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// Every request gets a response, and the cluster still works afterwards.
    #[test]
    fn no_body_makes_it_panic(body in any_json(), verb in 0..4_usize, kind in 0..5_usize, plural in 0..6_usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let cluster = Cluster::builder().auto_namespaces().build();
            let client = cluster.client("default");
            create_pod(&client, &pod("a")).await;
            let method = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE][verb].clone();
            let kind = [
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/strategic-merge-patch+json",
                "application/apply-patch+yaml",
                "application/json",
            ][kind];
            let path = [
                "/api/v1/namespaces/default/pods/a?fieldManager=m&force=true",
                "/api/v1/namespaces/default/pods/a/status?fieldManager=m",
                "/api/v1/namespaces/default/pods",
                "/api/v1/namespaces/default/pods/a/binding",
                "/api/v1/namespaces/default/services",
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            ][plural];
            let (code, _) = send(&client, method, path, kind, &body).await;
            assert!((200..=500).contains(&code), "{code}");
            create_pod(&client, &pod("b")).await;
        });
    }
}
