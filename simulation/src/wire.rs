//! Calls of everybody but operators: straight to the cluster, nothing can happen to them.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::Service;
use training_job::memory::Cluster;

/// Sends a request and returns the answer's code and body.
pub(crate) async fn send(cluster: &Cluster, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let kind = if method == Method::PATCH {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    let body = if body.is_null() {
        Bytes::new()
    } else {
        Bytes::from(body.to_string())
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind);
    let Ok(request) = request.body(Full::new(body)) else {
        return (0, Value::Null);
    };
    let Ok(answer) = cluster.endpoint().call(request).await;
    let code = answer.status().as_u16();
    if code < 400 {
        // Nobody reads what was stored.
        return (code, Value::Null);
    }
    let body = answer.into_body().collect().await.map(|b| b.to_bytes());
    let body = body.ok().and_then(|b| serde_json::from_slice(&b).ok());
    (code, body.unwrap_or_default())
}

/// The path of a pod, or of something below it.
pub(crate) fn pod(namespace: &str, name: &str, below: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods/{name}{below}")
}
