#![expect(clippy::unwrap_used, reason = "a measurement may fail by panic")]
//! Measures the in-memory API's time for the requests of a job's life: `cargo bench -p kube-memory`. The goal is 20
//! to 30 µs a request within the server.
//!
//! The number of lives is an argument, so that instructions can be counted on a busy machine too:
//! `valgrind --tool=callgrind target/release/deps/memory-* 100`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use futures::{StreamExt, pin_mut};
use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, WatchParams};
use kube::client::Body;
use kube::{Api, Client, Resource};
use kube_memory::Cluster;
use serde_json::{Value, json};
use tower::Service as _;

/// The number of measured lives, unless an argument sets another.
const LIFECYCLES: u32 = 2000;

fn typed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// Creates four pods and four services, moves each pod through its phases, then removes all with their owner. Two
/// watches read along.
async fn lifecycle(client: &Client, round: u32) -> u32 {
    let pp = PatchParams::default();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let services: Api<Service> = Api::default_namespaced(client.clone());
    let name = format!("job-{round}");
    let owner: ConfigMap = maps
        .create(
            &PostParams::default(),
            &typed(json!({"metadata": {"name": name}})),
        )
        .await
        .unwrap();
    let reference = vec![owner.controller_owner_ref(&()).unwrap()];
    let mut requests = 2;
    for index in 0..4 {
        let name = format!("{name}-{index}");
        let mut worker: Pod = typed(json!({
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"containers": [{"name": "main", "image": "example.com/main:1"}]},
        }));
        worker.metadata.owner_references = Some(reference.clone());
        pods.create(&PostParams::default(), &worker).await.unwrap();
        let mut service: Service = typed(json!({
            "metadata": {"name": name},
            "spec": {"clusterIP": "None", "selector": {"app": name}, "ports": [{"port": 9000}]},
        }));
        service.metadata.owner_references = Some(reference.clone());
        services.create(&PostParams::default(), &service).await.unwrap();
        for phase in ["Running", "Succeeded"] {
            let status = json!({"status": {"phase": phase}});
            pods.patch_status(&name, &pp, &Patch::Merge(&status))
                .await
                .unwrap();
        }
        requests += 4;
    }
    for round in 0..4 {
        let note = json!({"data": {"round": round.to_string()}});
        maps.patch(&name, &pp, &Patch::Merge(&note)).await.unwrap();
    }
    maps.delete(&name, &DeleteParams::background()).await.unwrap();
    requests + 4
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let lifecycles = std::env::args().find_map(|argument| argument.parse().ok());
    let lifecycles: u32 = lifecycles.unwrap_or(LIFECYCLES);
    let cluster = Cluster::new();
    let inside = Arc::new(AtomicU64::new(0));
    let (spent, endpoint) = (inside.clone(), cluster.endpoint());
    let timed = tower::service_fn(move |request: Request<Body>| {
        let (spent, mut endpoint) = (spent.clone(), endpoint.clone());
        async move {
            let begin = Instant::now();
            let response = endpoint.call(request).await;
            spent.fetch_add(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
            response
        }
    });
    let client = Client::new(timed, "default");
    let watch = |client: Client| async move {
        let stream = Api::<Pod>::default_namespaced(client)
            .watch(&WatchParams::default(), "0")
            .await
            .unwrap();
        pin_mut!(stream);
        while stream.next().await.is_some() {}
    };
    let readers = [
        tokio::spawn(watch(client.clone())),
        tokio::spawn(watch(client.clone())),
    ];
    let begin = Instant::now();
    let mut requests = 0;
    for round in 0..lifecycles {
        requests += lifecycle(&client, round).await;
    }
    let took = begin.elapsed();
    readers.iter().for_each(|reader| reader.abort());
    println!(
        "{:.0} lifecycles a second, {:.1} µs a request, {:.1} of them in the server ({requests} requests, {} changes)",
        f64::from(lifecycles) / took.as_secs_f64(),
        took.as_secs_f64() * 1e6 / f64::from(requests),
        inside.load(Ordering::Relaxed) as f64 / 1e3 / f64::from(requests),
        cluster.resource_version(),
    );
}
