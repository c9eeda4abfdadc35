//! The audit log.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;
use training_job_testbed::cluster::{Audit, ControlPlane, Options};

use super::objects::config_map;

#[tokio::test]
async fn the_audit_log_has_exactly_the_calls_of_a_user() {
    let audit = Some(Audit::Of(vec!["admin".to_owned()]));
    let cluster = ControlPlane::start(Options {
        audit,
        ..Options::default()
    })
    .await;
    let namespace = cluster.namespace("audit").await;
    let before = cluster.audit().len();

    config_map(cluster.client(), &namespace, "one", None).await;
    let api: Api<ConfigMap> = Api::namespaced(cluster.client(), &namespace);
    let patch = Patch::Merge(json!({"data": {"a": "b"}}));
    api.patch("one", &PatchParams::default(), &patch).await.unwrap();
    assert!(api.get_opt("two").await.unwrap().is_none());
    api.list(&Default::default()).await.unwrap();
    api.delete("one", &DeleteParams::default()).await.unwrap();

    let calls = &cluster.audit()[before..];
    let summaries: Vec<_> = calls.iter().map(|call| call.summary()).collect();
    assert_eq!(
        summaries,
        [
            "create configmaps one 201",
            "patch configmaps one 200",
            "get configmaps two 404",
            "list configmaps 200",
            "delete configmaps one 200",
        ]
    );
    for call in calls {
        assert_eq!(
            (&*call.user, &*call.namespace, &*call.stage),
            ("admin", &*namespace, "ResponseComplete")
        );
        assert!(
            call.uri
                .starts_with(&format!("/api/v1/namespaces/{namespace}/configmaps")),
            "{}",
            call.uri
        );
    }
    assert_eq!(calls[1].body, Some(json!({"data": {"a": "b"}})));
}

#[tokio::test]
async fn a_watch_is_there_when_it_begins() {
    let cluster = ControlPlane::start(Options {
        audit: Some(Audit::All),
        ..Options::default()
    })
    .await;
    let namespace = cluster.namespace("audit-watch").await;
    config_map(cluster.client(), &namespace, "one", None).await;
    cluster
        .wait::<ConfigMap>(&namespace, "one", |found| found.is_some())
        .await;
    let api: Api<ConfigMap> = Api::namespaced(cluster.client(), &namespace);
    let _watch = api.watch(&Default::default(), "0").await.unwrap();
    let calls = cluster.audit();
    let watches: Vec<_> = calls
        .iter()
        .filter(|c| c.verb == "watch" && c.namespace == namespace)
        .collect();
    assert!(
        watches
            .iter()
            .any(|c| c.stage == "ResponseStarted" && c.code == 200),
        "{watches:?}"
    );
    assert!(calls.iter().all(|call| call.user != "test-controller-manager"));
}
