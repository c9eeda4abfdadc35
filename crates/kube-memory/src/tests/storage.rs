use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::StreamExt;
use kube::api::{DeleteParams, PostParams, WatchEvent, WatchParams};

use parking_lot::Mutex;

use super::*;
use crate::Storage;

/// The definition of a kind with two versions.
fn definition() -> Value {
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
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

/// A disk that may be full. Clones share it.
#[derive(Clone, Default)]
struct Disk {
    entries: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    full: Arc<AtomicBool>,
}

impl Storage for Disk {
    fn load(&mut self) -> io::Result<Vec<(String, Vec<u8>)>> {
        Ok(self.entries.lock().clone().into_iter().collect())
    }

    fn commit(&mut self, changed: &[(String, Option<Vec<u8>>)]) -> io::Result<()> {
        if self.full.load(Ordering::Relaxed) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let mut entries = self.entries.lock();
        for (key, value) in changed.iter().cloned() {
            match value {
                Some(value) => entries.insert(key, value),
                None => entries.remove(&key),
            };
        }
        Ok(())
    }
}

fn on(disk: &Disk) -> Cluster {
    let cluster = cluster();
    assert_eq!(cluster.persist(disk.clone()).unwrap(), 0);
    cluster
}

/// All that a cluster would store now, except the counters of UIDs and names, which need not go back.
fn state(cluster: &Cluster) -> (u64, BTreeMap<String, String>) {
    let all = cluster.shared.locked(|server| server.all_entries()).unwrap();
    let texts = all
        .into_iter()
        .filter(|(key, _)| key != "/")
        .map(|(key, value)| (key, String::from_utf8(value.unwrap()).unwrap()));
    (cluster.resource_version(), texts.collect())
}

fn stored(disk: &Disk) -> BTreeMap<String, String> {
    let entries = disk.entries.lock();
    let texts = entries.iter().filter(|(key, _)| *key != "/");
    texts
        .map(|(key, value)| (key.clone(), String::from_utf8(value.clone()).unwrap()))
        .collect()
}

/// A generator of numbers, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Returns a request that may change much, or be rejected: method, path, media type and body.
fn request(numbers: &mut Numbers, cluster: &Cluster) -> (Method, String, &'static str, Value) {
    const JSON: &str = "application/json";
    let space = ["a", "b"][numbers.below(2) as usize];
    let name = format!("n{}", numbers.below(4));
    let map_path = format!("/api/v1/namespaces/{space}/configmaps");
    let thing_path = format!("/apis/example.com/v1/namespaces/{space}/things");
    let owner = cluster.get("configmaps", space, &format!("n{}", numbers.below(4)));
    let owners = owner.map_or(json!([]), |owner| {
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true}])
    });
    let policy = ["Foreground", "Background", "Orphan"][numbers.below(3) as usize];
    let options = json!({"propagationPolicy": policy});
    let metadata = json!({"name": name, "ownerReferences": owners});
    match numbers.below(14) {
        0 => (
            Method::POST,
            "/api/v1/namespaces".into(),
            JSON,
            json!({"metadata": {"name": space}}),
        ),
        1 if numbers.below(4) == 0 => (
            Method::DELETE,
            format!("/api/v1/namespaces/{space}"),
            JSON,
            Value::Null,
        ),
        2 => (
            Method::POST,
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".into(),
            JSON,
            definition(),
        ),
        3 if numbers.below(4) == 0 => (
            Method::DELETE,
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com".into(),
            JSON,
            Value::Null,
        ),
        4 | 5 => {
            let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata,
                "spec": {"replicas": numbers.below(5)}});
            (Method::POST, thing_path, JSON, thing)
        }
        6 => (Method::DELETE, format!("{thing_path}/{name}"), JSON, options),
        7 => {
            let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
                "data": {"k": numbers.below(9).to_string()}});
            let path = format!("{map_path}/{name}?fieldManager=m&force=true");
            (Method::PATCH, path, "application/apply-patch+yaml", body)
        }
        8 => {
            let finalizers = if numbers.below(2) == 0 {
                json!(["a/b"])
            } else {
                json!([])
            };
            let body = json!({"metadata": {"finalizers": finalizers}});
            (
                Method::PATCH,
                format!("{map_path}/{name}"),
                "application/merge-patch+json",
                body,
            )
        }
        9 => (Method::DELETE, map_path, JSON, Value::Null),
        10 => (Method::DELETE, format!("{map_path}/{name}"), JSON, options),
        11 => (
            Method::POST,
            format!("/api/v1/namespaces/{space}/resourcequotas"),
            JSON,
            json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/configmaps": "3", "configmaps": "3"}}}),
        ),
        _ => (Method::POST, map_path, JSON, json!({"metadata": metadata})),
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_be_stored_changes_nothing() {
    let (mut failed, mut made) = (0, 0);
    for seed in 0..20 {
        let disk = Disk::default();
        let cluster = on(&disk);
        let client = cluster.client("default");
        let mut numbers = Numbers(seed);
        for _ in 0..200 {
            let (method, path, kind, body) = request(&mut numbers, &cluster);
            let before = state(&cluster);
            if numbers.below(3) == 0 {
                disk.full.store(true, Ordering::Relaxed);
                let (code, response) = send(&client, method.clone(), &path, kind, &body).await;
                disk.full.store(false, Ordering::Relaxed);
                assert_eq!(state(&cluster), before, "{method} {path} {body}");
                if code == 500 {
                    let message = response["message"].as_str().unwrap();
                    assert!(
                        message.contains("cannot be stored: no storage space"),
                        "{message}"
                    );
                    failed += 1;
                }
            }
            // The same request is made as if the disk had never been full.
            let (code, response) = send(&client, method, &path, kind, &body).await;
            assert_ne!(code, 500, "{response}");
            let after = state(&cluster);
            made += u32::from(after != before);
            assert_eq!(stored(&disk), after.1);
        }
        let (again, now) = (on(&disk), state(&cluster));
        assert_eq!(state(&again), now);
        // The indexes are right: nothing is left in a namespace that is deleted, but what has a finalizer.
        for space in ["a", "b"] {
            let path = format!("/api/v1/namespaces/{space}");
            send(
                &again.client("default"),
                Method::DELETE,
                &path,
                "application/json",
                &Value::Null,
            )
            .await;
        }
        for kind in ["configmaps", "things", "resourcequotas"] {
            for left in again.list(kind, None) {
                assert_ne!(left["metadata"]["finalizers"], Value::Null, "{left:?}");
            }
        }
    }
    assert!(failed > 100 && made > 500, "{failed} {made}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_gets_a_change_once_it_is_stored() {
    let disk = Disk::default();
    let cluster = on(&disk);
    let client = cluster.client("default");
    let maps = maps(&client);
    let params = WatchParams::default();
    let mut watch = maps.watch(&params, "0").await.unwrap().boxed();
    disk.full.store(true, Ordering::Relaxed);
    let refused = refusal(maps.create(&PostParams::default(), &map("lost")).await);
    assert_eq!((refused.code, refused.reason.as_str()), (500, "InternalError"));
    disk.full.store(false, Ordering::Relaxed);
    maps.create(&PostParams::default(), &map("kept")).await.unwrap();
    match soon(watch.next()).await.unwrap().unwrap() {
        WatchEvent::Added(map) => assert_eq!(map.metadata.name.as_deref(), Some("kept")),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_later_cluster_continues_where_the_earlier_one_ended() {
    let disk = Disk::default();
    let first = on(&disk);
    let client = first.client("default");
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, _) = send(&client, Method::POST, path, "application/json", &definition()).await;
    assert_eq!(code, 201);
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    let services = "/api/v1/namespaces/default/services";
    let (_, one) = send(&client, Method::POST, services, "application/json", &service).await;
    let old = create_pod(&client, &pod("one")).await.metadata;
    let newest = first.resource_version();

    let second = on(&disk);
    let client = second.client("default");
    assert_eq!(state(&second), state(&first));
    let params = WatchParams::default();
    let mut expired = pods(&client).watch(&params, "1").await.unwrap().boxed();
    match soon(expired.next()).await.unwrap().unwrap() {
        WatchEvent::Error(status) => assert_eq!(status.code, 410),
        other => panic!("{other:?}"),
    }
    let mut resumed = pods(&client)
        .watch(&params, &newest.to_string())
        .await
        .unwrap()
        .boxed();
    let new = create_pod(&client, &pod("two")).await.metadata;
    assert_ne!(new.uid, old.uid);
    assert_eq!(new.resource_version, Some((newest + 1).to_string()));
    match soon(resumed.next()).await.unwrap().unwrap() {
        WatchEvent::Added(pod) => assert_eq!(pod.metadata.name.as_deref(), Some("two")),
        other => panic!("{other:?}"),
    }
    let service = json!({"metadata": {"name": "t"}, "spec": {"ports": [{"port": 80}]}});
    let (_, two) = send(&client, Method::POST, services, "application/json", &service).await;
    assert_ne!(one["spec"]["clusterIP"], two["spec"]["clusterIP"]);
    pods(&client)
        .delete("one", &DeleteParams::default().grace_period(0))
        .await
        .unwrap();
    assert!(!stored(&disk).contains_key("pods/default/one"));
}

#[tokio::test(start_paused = true)]
async fn damaged_entries_are_reported_and_unknown_kinds_stay() {
    let disk = Disk::default();
    on(&disk);
    let entries = || disk.entries.lock().clone();
    let whole = entries();
    for (key, value, problem) in [
        ("namespaces//default", &b"{\"object\":"[..], "is damaged: EOF"),
        (
            "namespaces//other",
            &whole["namespaces//default"],
            "of another name",
        ),
        ("/", b"{}", "the counters is damaged"),
        (
            "namespaces//default",
            b"{\"object\":{\"metadata\":{\"resourceVersion\":\"99\",\"name\":\"default\"}}}",
            "newer",
        ),
    ] {
        let damaged = disk.entries.clone();
        damaged.lock().insert(key.to_owned(), value.to_vec());
        let before = entries();
        let error = cluster().persist(disk.clone()).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
        assert_eq!(entries(), before, "nothing is lost");
        *damaged.lock() = whole.clone();
    }
    let unknown = b"{\"object\":{}}".to_vec();
    disk.entries
        .lock()
        .insert("gadgets.example.com/default/g".to_owned(), unknown.clone());
    assert_eq!(cluster().persist(disk.clone()).unwrap(), 1);
    assert_eq!(entries()["gadgets.example.com/default/g"], unknown);
}
