//! The requests of the node agent, recorded by a scripted API server.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::Client;
use kube::client::Body;
use local_node::{Node, NodeConfig, NodeEvent};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

type HttpResponse = Response<UnsyncBoxBody<Bytes, std::convert::Infallible>>;

/// A server with one pod. It records every request that wrote an object or read values.
struct Script {
    pod: Mutex<Value>,
    seen: watch::Sender<Vec<(String, Value)>>,
    events: mpsc::UnboundedSender<Value>,
    watched: Mutex<Option<mpsc::UnboundedReceiver<Value>>>,
}

impl Script {
    fn new(pod: Value) -> Arc<Self> {
        let (events, watched) = mpsc::unbounded_channel();
        Arc::new(Self {
            pod: Mutex::new(pod),
            seen: watch::Sender::default(),
            events,
            watched: Mutex::new(Some(watched)),
        })
    }

    fn client(self: &Arc<Self>) -> Client {
        let script = Arc::clone(self);
        let service = tower::service_fn(move |request: Request<Body>| {
            let script = Arc::clone(&script);
            async move { Ok::<_, std::convert::Infallible>(script.handle(request).await) }
        });
        Client::new(service, "ns")
    }

    async fn handle(&self, request: Request<Body>) -> HttpResponse {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let (path, query) = (head.uri.path(), head.uri.query().unwrap_or_default());
        if path.ends_with("/pods") && query.contains("watch=true") {
            let events = self.watched.lock().take();
            let lines =
                stream::iter(events).flat_map(|mut events| stream::poll_fn(move |cx| events.poll_recv(cx)));
            let frames = lines
                .chain(stream::pending())
                .map(|event| Ok(Frame::data(Bytes::from(format!("{event}\n")))));
            return Response::new(StreamBody::new(frames).boxed_unsync());
        }
        let (status, content) = self.respond(&head.method, path, &body);
        if !(head.method == Method::GET && path.ends_with("/pods")) {
            self.seen
                .send_modify(|seen| seen.push((format!("{} {path}", head.method), body)));
        }
        let body = Full::new(Bytes::from(content.to_string()));
        let mut response = Response::new(body.boxed_unsync());
        *response.status_mut() = status;
        response
    }

    fn respond(&self, method: &Method, path: &str, body: &Value) -> (StatusCode, Value) {
        let mut pod = self.pod.lock();
        let list = |kind: &str, items: Vec<Value>| json!({"apiVersion": "v1", "kind": kind, "metadata": {"resourceVersion": "1"}, "items": items});
        match (method.as_str(), path.rsplit('/').next().unwrap()) {
            ("GET", "pods") => (StatusCode::OK, list("PodList", vec![pod.clone()])),
            ("GET", "services") => {
                let service = |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec});
                let found = vec![
                    service("job-0", json!({"selector": {"app": "x"}, "clusterIP": "None"})),
                    service("kubernetes", json!({"clusterIP": "10.0.0.1"})),
                ];
                (StatusCode::OK, list("ServiceList", found))
            }
            ("GET", "token") => (
                StatusCode::OK,
                json!({"metadata": {"name": "token"}, "data": {"key": "c2VjcmV0"}}),
            ),
            ("POST", "binding") => {
                pod["spec"]["nodeName"] = body["target"]["name"].clone();
                self.events
                    .send(json!({"type": "MODIFIED", "object": *pod}))
                    .unwrap();
                (
                    StatusCode::CREATED,
                    json!({"apiVersion": "v1", "kind": "Status", "status": "Success"}),
                )
            }
            ("PATCH", "status") => {
                pod["status"] = body["status"].clone();
                (StatusCode::OK, pod.clone())
            }
            ("DELETE", "job-0") => {
                self.events
                    .send(json!({"type": "DELETED", "object": *pod}))
                    .unwrap();
                (StatusCode::OK, pod.clone())
            }
            _ => (
                StatusCode::NOT_FOUND,
                json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}),
            ),
        }
    }

    /// Waits for the first request with this line and a matching body.
    async fn request(&self, line: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut seen = self.seen.subscribe();
        let found = |seen: &[(String, Value)]| {
            let mut all = seen.iter();
            all.find(|(path, body)| path == line && wanted(body))
                .map(|(_, body)| body.clone())
        };
        let awaited = seen.wait_for(|seen| found(seen).is_some());
        let seen = tokio::time::timeout(Duration::from_secs(30), awaited)
            .await
            .unwrap()
            .unwrap();
        found(&seen).unwrap()
    }
}

#[tokio::test]
async fn a_pods_life_in_requests() {
    let script = Script::new(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "job-0", "namespace": "ns", "uid": "u1", "resourceVersion": "1"},
        "spec": {"restartPolicy": "Never", "containers": [{
            "name": "main", "image": "img", "command": ["sh", "-c", "echo $TOKEN $ROLE; exit 3"],
            "env": [
                {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "token", "key": "key"}}},
                {"name": "ROLE", "value": "kubernetes"},
            ],
        }]},
    }));
    let (events, mut node_events) = mpsc::channel(100);
    let mut config = NodeConfig::default();
    config.name = "laptop".into();
    config.namespace = Some("ns".into());
    let node = Node::start(script.client(), config, events).unwrap();
    let pod = "/api/v1/namespaces/ns/pods/job-0";

    let binding = script.request(&format!("POST {pod}/binding"), |_| true).await;
    assert_eq!(binding["target"]["name"], json!("laptop"));
    assert_eq!(binding["metadata"]["uid"], json!("u1"));
    let failed = |body: &Value| body["status"]["phase"] == "Failed";
    let report = script.request(&format!("PATCH {pod}/status"), failed).await;
    assert_eq!(report["metadata"]["uid"], "u1");
    let end = &report["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(end["exitCode"], json!(3));
    assert_eq!(end["message"], json!("secret kubernetes"));
    let line = loop {
        if let NodeEvent::Log(line) = node_events.recv().await.unwrap() {
            break line.text;
        }
    };
    assert_eq!(line, "secret kubernetes");

    let mut deleted = script.pod.lock().clone();
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    script
        .events
        .send(json!({"type": "MODIFIED", "object": deleted}))
        .unwrap();
    let delete = script.request(&format!("DELETE {pod}"), |_| true).await;
    assert_eq!(delete["gracePeriodSeconds"], json!(0));
    assert_eq!(delete["preconditions"]["uid"], json!("u1"));
    node.shutdown(Duration::ZERO).await;
}
