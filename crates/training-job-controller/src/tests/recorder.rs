use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use kube_follow::{CallTimeout, Gate};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::sleep;
use training_job::plan::PlannedEvent;

use super::super::calls::CallLimiter;
use super::super::events::Recorder;
use super::super::metrics::Metrics;
use super::toy::job;

/// A server that stores the messages of events.
#[derive(Clone, Default)]
struct Server {
    /// The number of calls that get no answer; each third of them takes effect.
    lost: Arc<Mutex<usize>>,
    /// Name, message, and true if the answer was sent.
    stored: Arc<Mutex<Vec<(String, String, bool)>>>,
}

impl Server {
    async fn answer(self, request: http::Request<Body>) -> std::io::Result<http::Response<Body>> {
        let body = http_body_util::BodyExt::collect(request.into_body()).await;
        let event: Value = serde_json::from_slice(&body.unwrap().to_bytes()).unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (name, message) = (text(&event["metadata"]["name"]), text(&event["message"]));
        let is_lost = {
            let mut lost = self.lost.lock();
            let is_lost = *lost > 0;
            *lost = lost.saturating_sub(1);
            is_lost.then_some(*lost)
        };
        let mut stored = self.stored.lock();
        let is_known = stored.iter().any(|(other, ..)| *other == name);
        if !name.is_empty() && !is_known && is_lost.is_none_or(|number| number % 3 == 0) {
            stored.push((name, message, is_lost.is_none()));
        }
        if is_lost.is_some() {
            return Err(std::io::ErrorKind::ConnectionReset.into());
        }
        let status = json!({"kind": "Status", "status": "Failure", "message": "", "reason": "AlreadyExists", "code": 409});
        let answer = http::Response::builder().status(if is_known { 409 } else { 201 });
        Ok(answer.body(Body::from(status.to_string().into_bytes())).unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn events_wait_in_their_order_while_the_server_is_away_and_are_stored_once() {
    let (server, gate) = (Server::default(), Gate::default());
    *server.lost.lock() = 40;
    let inner = server.clone();
    let client = Client::new(
        tower::service_fn(move |request| inner.clone().answer(request)),
        "ns",
    );
    let calls = CallLimiter::new(16, CallTimeout::default(), gate.clone());
    let recorder = Recorder::new(gate.client(client), calls, Metrics::default());
    let expected: Vec<_> = (10..60).map(|number| format!("event {number}")).collect();
    for message in &expected {
        let event = PlannedEvent {
            warning: false,
            reason: "Why".to_owned(),
            message: message.clone(),
        };
        recorder.record(&job(message, 5), &event, Timestamp::UNIX_EPOCH, false);
    }
    let run = async {
        tokio::select! {
            () = recorder.run() => {},
            () = sleep(Duration::from_secs(60)) => {},
        }
    };
    run.await;
    let stored = server.stored.lock();
    let (answered, lost): (Vec<_>, Vec<_>) = stored.iter().partition(|(.., answered)| *answered);
    // The first eight are in flight together, in any order.
    let later: Vec<_> = answered.iter().map(|(_, message, _)| message).skip(5).collect();
    assert!(later.is_sorted(), "{later:?}");
    assert_eq!(lost.len(), 3, "every third of eight");
    let mut messages: Vec<_> = stored.iter().map(|(_, message, _)| message.clone()).collect();
    messages.sort();
    assert_eq!(messages, expected);
}
