//! Sends the calls of users and nodes directly to the cluster, without faults.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use kube_memory::{Cluster, Object};
use serde_json::Value;
use tower::Service;

/// Returns a request with this body. A patch is a merge patch.
///
/// # Panics
/// Panics if `path` is not a valid path.
pub fn request(method: Method, path: &str, body: &Value) -> Request<Vec<u8>> {
    let content_type = if method == Method::PATCH {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .body(if body.is_null() {
            Vec::new()
        } else {
            serde_json::to_vec(body).unwrap()
        })
        .unwrap()
}

/// Returns the path of an object in the namespace `default`, or of all objects of this plural if `name` is empty.
pub fn path(plural: &str, name: &str) -> String {
    let group = match plural {
        "pods"
        | "services"
        | "configmaps"
        | "serviceaccounts"
        | "resourcequotas"
        | "secrets"
        | "persistentvolumeclaims" => "/api/v1",
        "stepjobs" => "/apis/example.com/v1",
        "roles" | "rolebindings" => "/apis/rbac.authorization.k8s.io/v1",
        "horizontalpodautoscalers" => "/apis/autoscaling/v2",
        _ => "/apis/kubeflow.org/v1",
    };
    let path = format!("{group}/namespaces/default/{plural}/{name}");
    path.trim_end_matches('/').to_owned()
}

/// Returns the path of a stored object.
pub fn path_of(object: &Object, plural: &str) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = text(&object["apiVersion"]);
    let root = if version.contains('/') { "apis" } else { "api" };
    let [namespace, name] = ["namespace", "name"].map(|key| text(&object["metadata"][key]));
    format!("/{root}/{version}/namespaces/{namespace}/{plural}/{name}")
}

/// Sends a request directly to the cluster. Returns the status code, and the body of an error.
pub(crate) async fn send(cluster: &Cluster, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let request = request(method, path, body).map(|body| Full::new(Bytes::from(body)));
    let Ok(answer) = cluster.endpoint().call(request).await;
    let code = answer.status().as_u16();
    if code < 400 {
        // No caller reads the body of a success.
        return (code, Value::Null);
    }
    let body = answer.into_body().collect().await.map(|b| b.to_bytes());
    let body = body.ok().and_then(|b| serde_json::from_slice(&b).ok());
    (code, body.unwrap_or_default())
}

/// Returns the path of a pod in any namespace, followed by `below`, such as a subresource.
pub(crate) fn pod(namespace: &str, name: &str, below: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods/{name}{below}")
}
