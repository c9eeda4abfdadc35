use k8s_openapi::api::core::v1::Service;
use kube::{
    ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};

use super::*;

#[tokio::test(start_paused = true)]
async fn a_new_pod_has_the_defaults_of_the_server() {
    let client = cluster().client("default");
    let made = create_pod(&client, &pod("a")).await;
    let value = serde_json::to_value(&made).unwrap();
    assert_eq!(value["metadata"]["creationTimestamp"], "2030-01-01T00:00:00Z");
    assert_eq!(value["metadata"]["generation"], 1);
    assert_eq!(value["metadata"]["namespace"], "default");
    assert_eq!(
        value["status"],
        json!({"phase": "Pending", "qosClass": "BestEffort"})
    );
    assert_eq!(
        value["spec"],
        json!({
            "containers": [{
                "name": "main",
                "image": "image:1",
                "imagePullPolicy": "IfNotPresent",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }],
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": true,
            "preemptionPolicy": "PreemptLowerPriority",
            "priority": 0,
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 30,
            "tolerations": [
                {
                    "key": "node.kubernetes.io/not-ready",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                },
                {
                    "key": "node.kubernetes.io/unreachable",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                },
            ],
        })
    );
    assert_eq!(made, pods(&client).get("a").await.unwrap());
}

#[tokio::test]
async fn names_are_taken_once_and_generated_ones_differ() {
    let client = cluster().client("default");
    create_pod(&client, &pod("a")).await;
    let status = refusal(pods(&client).create(&PostParams::default(), &pod("a")).await);
    assert!(status.is_already_exists());
    assert_eq!(status.message, "pods \"a\" already exists");

    let mut nameless = pod("x");
    nameless.metadata.name = None;
    nameless.metadata.generate_name = Some("run-".to_owned());
    let one = create_pod(&client, &nameless).await;
    let two = create_pod(&client, &nameless).await;
    assert!(one.name_any().starts_with("run-") && one.name_any().len() == 9);
    assert_ne!(one.name_any(), two.name_any());
    assert_ne!(one.uid(), two.uid());

    let status = refusal(pods(&client).get("none").await);
    assert_eq!(
        (status.code, status.message.as_str()),
        (404, "pods \"none\" not found")
    );
}

#[tokio::test]
async fn malformed_objects_are_rejected_with_causes() {
    let client = cluster().client("default");
    let refused = async |value: Value| {
        let (code, status) = send(
            &client,
            Method::POST,
            "/api/v1/namespaces/default/pods",
            "application/json",
            &value,
        )
        .await;
        (code, causes(&typed::<Status>(status)))
    };
    let cause = |reason: &str, field: &str| (reason.to_owned(), field.to_owned());
    let container = json!({"name": "c", "image": "i"});
    assert_eq!(
        refused(json!({"metadata": {"name": "A_b"}, "spec": {"containers": [container]}})).await,
        (422, vec![cause("FieldValueInvalid", "metadata.name")])
    );
    assert_eq!(
        refused(json!({"metadata": {"name": "a"}, "spec": {}})).await,
        (422, vec![cause("FieldValueRequired", "spec.containers")])
    );
    assert_eq!(
        refused(json!({"metadata": {"name": "a"}, "spec": {"containers": []}})).await,
        (422, vec![cause("FieldValueRequired", "spec.containers")])
    );
    assert_eq!(
        refused(json!({
            "metadata": {"name": "a", "labels": {"-": "v", "k": "!"}},
            "spec": {
                "restartPolicy": "Sometimes",
                "containers": [container, {"name": "c"}, {"name": "d", "image": "i", "ports": [{"containerPort": 70000}]}],
            },
        }))
        .await,
        (
            422,
            vec![
                cause("FieldValueInvalid", "metadata.labels"),
                cause("FieldValueInvalid", "metadata.labels"),
                cause("FieldValueDuplicate", "spec.containers[1].name"),
                cause("FieldValueRequired", "spec.containers[1].image"),
                cause("FieldValueInvalid", "spec.containers[2].ports[0].containerPort"),
                cause("FieldValueNotSupported", "spec.restartPolicy"),
            ]
        )
    );
    assert_eq!(
        refused(json!({"metadata": {"name": "a"}, "spec": {"containers": "many"}}))
            .await
            .0,
        400
    );
    assert_eq!(refused(json!({"metadata": "none"})).await.0, 400);
    assert_eq!(refused(json!([1, 2])).await.0, 400);
    assert_eq!(
        refused(json!({"kind": "Service", "metadata": {"name": "a"}}))
            .await
            .0,
        400
    );
    let other = json!({"metadata": {"name": "a", "namespace": "b"}, "spec": {"containers": [container]}});
    assert_eq!(refused(other).await.0, 400);
    let (code, _) = raw(
        &client,
        Method::POST,
        "/api/v1/namespaces/default/pods",
        "application/json",
        b"{".to_vec(),
    )
    .await;
    assert_eq!(code, 400);
}

#[tokio::test]
async fn services_get_defaults_and_checks() {
    let cluster = cluster();
    let client = cluster.client("default");
    let services: Api<Service> = Api::default_namespaced(client.clone());
    let headless: Service = typed(json!({
        "metadata": {"name": "a"},
        "spec": {"clusterIP": "None", "selector": {"app": "a"}, "ports": [{"port": 9000}]},
    }));
    services.create(&PostParams::default(), &headless).await.unwrap();
    let stored = cluster.get("services", "default", "a").unwrap();
    assert_eq!(
        stored["spec"],
        json!({
            "clusterIP": "None",
            "clusterIPs": ["None"],
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"port": 9000, "protocol": "TCP", "targetPort": 9000}],
            "selector": {"app": "a"},
            "sessionAffinity": "None",
            "type": "ClusterIP",
        })
    );
    let refused = async |value: Value| {
        causes(&refusal(
            services.create(&PostParams::default(), &typed(value)).await,
        ))
    };
    let cause = |reason: &str, field: &str| (reason.to_owned(), field.to_owned());
    assert_eq!(
        refused(
            json!({"metadata": {"name": "a.b"}, "spec": {"ports": [{"port": 1}, {"name": "b", "port": 1}]}})
        )
        .await,
        [
            cause("FieldValueInvalid", "metadata.name"),
            cause("FieldValueRequired", "spec.ports[0].name"),
            cause("FieldValueDuplicate", "spec.ports[1]"),
        ]
    );
    assert_eq!(
        refused(json!({"metadata": {"name": "b"}, "spec": {}})).await,
        [cause("FieldValueRequired", "spec.ports")]
    );
    // The address survives an update without an address, and another address is rejected.
    let mut plain = headless.clone();
    plain.metadata.name = Some("c".to_owned());
    plain.spec.as_mut().unwrap().cluster_ip = None;
    let made = services.create(&PostParams::default(), &plain).await.unwrap();
    let address = made.spec.unwrap().cluster_ip.unwrap();
    assert!(address.starts_with("10.96."));
    let updated = services
        .replace("c", &PostParams::default(), &plain)
        .await
        .unwrap();
    assert_eq!(updated.spec.unwrap().cluster_ip.unwrap(), address);
    plain.spec.as_mut().unwrap().cluster_ip = Some("10.97.0.9".to_owned());
    assert!(refusal(services.replace("c", &PostParams::default(), &plain).await).is_invalid());
}

#[tokio::test]
async fn replacing_needs_the_latest_version() {
    let cluster = cluster();
    let client = cluster.client("default");
    let first = maps(&client)
        .create(&PostParams::default(), &map("m"))
        .await
        .unwrap();
    let mut changed = first.clone();
    changed
        .data
        .as_mut()
        .unwrap()
        .insert("k".to_owned(), "w".to_owned());
    let second = maps(&client)
        .replace("m", &PostParams::default(), &changed)
        .await
        .unwrap();
    assert_ne!(first.resource_version(), second.resource_version());
    let status = refusal(maps(&client).replace("m", &PostParams::default(), &changed).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert_eq!(
        status.message,
        "Operation cannot be fulfilled on configmaps \"m\": the object has been modified; please apply your changes \
         to the latest version and try again"
    );
    // A write of the same content changes neither the version nor the log.
    let before = cluster.resource_version();
    let third = maps(&client)
        .replace("m", &PostParams::default(), &second)
        .await
        .unwrap();
    assert_eq!(third.resource_version(), second.resource_version());
    assert_eq!(cluster.resource_version(), before);
    // An update without a version may overwrite this kind. An update with another UID is rejected.
    changed.metadata.resource_version = None;
    maps(&client)
        .replace("m", &PostParams::default(), &changed)
        .await
        .unwrap();
    changed.metadata.uid = Some("another".to_owned());
    assert!(refusal(maps(&client).replace("m", &PostParams::default(), &changed).await).is_conflict());
    changed.metadata.name = Some("n".to_owned());
    assert_eq!(
        refusal(maps(&client).replace("m", &PostParams::default(), &changed).await).code,
        400
    );
}

#[tokio::test]
async fn a_dry_run_stores_nothing() {
    let cluster = cluster();
    let client = cluster.client("default");
    let before = cluster.resource_version();
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    assert_eq!(
        maps(&client).create(&dry, &map("m")).await.unwrap().name_any(),
        "m"
    );
    assert_eq!(cluster.resource_version(), before);
    assert!(cluster.get("configmaps", "default", "m").is_none());
}

#[tokio::test]
async fn status_and_desired_state_are_written_apart() {
    let client = cluster().client("default");
    let made = create_pod(&client, &pod("a")).await;
    let patch = json!({"status": {"phase": "Running"}, "spec": {"activeDeadlineSeconds": 9}});
    let pp = PatchParams::default();
    let after = pods(&client)
        .patch_status("a", &pp, &Patch::Merge(&patch))
        .await
        .unwrap();
    assert_eq!(after.status.as_ref().unwrap().phase.as_deref(), Some("Running"));
    assert_eq!(after.spec, made.spec);
    assert_eq!(after.metadata.generation, Some(1));
    let patch = json!({"status": {"phase": "Failed"}, "spec": {"activeDeadlineSeconds": 9}});
    let after = pods(&client)
        .patch("a", &pp, &Patch::Merge(&patch))
        .await
        .unwrap();
    assert_eq!(after.status.as_ref().unwrap().phase.as_deref(), Some("Running"));
    assert_eq!(after.spec.as_ref().unwrap().active_deadline_seconds, Some(9));
    assert_eq!(after.metadata.generation, Some(2));
    let patch = json!({"status": {"conditions": "none", "message": null}});
    assert_eq!(
        refusal(pods(&client).patch_status("a", &pp, &Patch::Merge(&patch)).await).code,
        422
    );
    let patch = json!({"spec": {"restartPolicy": "Never"}});
    let status = refusal(pods(&client).patch("a", &pp, &Patch::Merge(&patch)).await);
    assert_eq!(
        causes(&status),
        [("FieldValueForbidden".to_owned(), "spec".to_owned())]
    );
}

#[tokio::test]
async fn a_pod_is_bound_once() {
    let cluster = cluster();
    let client = cluster.client("default");
    create_pod(&client, &pod("a")).await;
    let binding = json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}});
    let path = "/api/v1/namespaces/default/pods/a/binding";
    assert_eq!(
        send(&client, Method::POST, path, "application/json", &binding)
            .await
            .0,
        201
    );
    let stored = cluster.get("pods", "default", "a").unwrap();
    assert_eq!(stored["spec"]["nodeName"], "n1");
    assert_eq!(stored["status"]["conditions"][0]["type"], "PodScheduled");
    let (code, status) = send(&client, Method::POST, path, "application/json", &binding).await;
    assert_eq!((code, &status["reason"]), (409, &json!("Conflict")));
    let missing = "/api/v1/namespaces/default/pods/b/binding";
    assert_eq!(
        send(&client, Method::POST, missing, "application/json", &binding)
            .await
            .0,
        404
    );
}

#[tokio::test]
async fn events_have_two_shapes() {
    use k8s_openapi::api::{core::v1::Event as Core, events::v1::Event};
    let client = cluster().client("default");
    let event: Event = typed(json!({
        "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "name": "a", "namespace": "default"},
        "note": "text", "reason": "Started", "action": "Start", "type": "Normal",
        "reportingController": "c", "reportingInstance": "c-1", "eventTime": "2030-01-01T00:00:00.000000Z",
    }));
    Api::<Event>::default_namespaced(client.clone())
        .create(&PostParams::default(), &event)
        .await
        .unwrap();
    let core = Api::<Core>::default_namespaced(client.clone());
    let found = core
        .list(&ListParams::default().fields("involvedObject.name=a,reason=Started"))
        .await
        .unwrap();
    assert_eq!(found.items[0].message.as_deref(), Some("text"));
    let back = Api::<Event>::default_namespaced(client.clone())
        .get("e")
        .await
        .unwrap();
    assert_eq!(
        (back.note, back.regarding),
        (event.note.clone(), event.regarding.clone())
    );
    let mut silent = event;
    silent.metadata.name = Some("f".to_owned());
    silent.action = None;
    let result = Api::<Event>::default_namespaced(client)
        .create(&PostParams::default(), &silent)
        .await;
    assert_eq!(
        causes(&refusal(result)),
        [("FieldValueRequired".to_owned(), "action".to_owned())]
    );
}
