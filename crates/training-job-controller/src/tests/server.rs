use std::sync::Arc;

use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// Returns a client of a server whose responses, a code and a body, are a function of method, path and body.
pub(crate) fn client(respond: impl Fn(&str, &str, Value) -> (u16, Value) + Send + Sync + 'static) -> Client {
    let respond = Arc::new(respond);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let respond = respond.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let (code, response) = respond(head.method.as_str(), head.uri.path(), body);
            let body = Body::from(response.to_string().into_bytes());
            Ok::<_, std::io::Error>(http::Response::builder().status(code).body(body).unwrap())
        }
    });
    Client::new(service, "ns")
}

/// Returns the response to a call that fails.
pub(crate) fn failure(code: u16, reason: &str) -> (u16, Value) {
    let status =
        json!({"kind": "Status", "status": "Failure", "message": "m", "reason": reason, "code": code});
    (code, status)
}
