//! Requests by a real client, and watches by kube's own watcher.

mod backup;
mod determinism;
mod settings;
mod storage;
mod watches;

use std::time::Duration;

use http::{Method, Request};
use http_body_util::BodyExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{Api, Client, api::PostParams, client::Body, core::Status};
use serde_json::{Value, json};

use super::Cluster;

/// The start time in seconds, 2030-01-01T00:00:00Z.
const START: i64 = 1_893_456_000;

/// A cluster whose clock follows Tokio's.
fn cluster() -> Cluster {
    let begin = tokio::time::Instant::now();
    Cluster::with_clock(move || {
        let passed = tokio::time::Instant::now().duration_since(begin);
        Timestamp::from_second(START).unwrap() + passed
    })
}

fn pods(client: &Client) -> Api<Pod> {
    Api::default_namespaced(client.clone())
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::default_namespaced(client.clone())
}

fn typed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn pod(name: &str) -> Pod {
    typed(json!({
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "image:1"}]},
    }))
}

fn map(name: &str) -> ConfigMap {
    typed(json!({"metadata": {"name": name}, "data": {"k": "v"}}))
}

async fn create_pod(client: &Client, pod: &Pod) -> Pod {
    pods(client).create(&PostParams::default(), pod).await.unwrap()
}

/// Returns the status with which a request was rejected.
fn refusal<T: std::fmt::Debug>(result: kube::Result<T>) -> Status {
    match result {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("no refusal: {other:?}"),
    }
}

/// Sends JSON unchanged, and returns the code and the response.
async fn send(client: &Client, method: Method, path: &str, kind: &str, body: &Value) -> (u16, Value) {
    let body = match body {
        Value::Null => Vec::new(),
        body => serde_json::to_vec(body).unwrap(),
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind);
    let response = client
        .send(request.body(Body::from(body)).unwrap())
        .await
        .unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

/// Returns the output of a future that must be ready without waiting.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_millis(1), future)
        .await
        .expect("nothing came")
}
