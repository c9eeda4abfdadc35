//! Watches, line by line.

use std::pin::Pin;

use futures::{AsyncBufReadExt, Stream, StreamExt};
use http::Request;
use kube::Client;
use serde_json::Value;
use tokio::time::timeout;
use training_job_testbed::cluster::WAIT_TIMEOUT;

/// The value for a line that did not arrive in time.
pub(crate) const NOTHING: &str = "nothing came";

pub(crate) struct Watch {
    lines: Pin<Box<dyn Stream<Item = std::io::Result<String>>>>,
}

impl Watch {
    pub(crate) async fn open(client: &Client, path: &str, accept: Option<&str>) -> Self {
        let separator = if path.contains('?') { '&' } else { '?' };
        let request = Request::get(format!("{path}{separator}watch=1"))
            .header("accept", accept.unwrap_or("application/json"))
            .body(Vec::new())
            .unwrap();
        let stream = client.request_stream(request).await;
        let stream = stream.unwrap_or_else(|e| panic!("no watch of {path}: {e}"));
        Self {
            lines: Box::pin(stream.lines()),
        }
    }

    /// Returns the next event, or `None` at the end. Periodic bookmarks are skipped.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            let Ok(line) = timeout(WAIT_TIMEOUT, self.lines.next()).await else {
                return Some(Value::from(NOTHING));
            };
            let line = line?.expect("the watch is not cut off");
            let event: Value = serde_json::from_str(&line).expect("a line is JSON");
            let asked_for = &event["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"];
            if event["type"] != "BOOKMARK" || !asked_for.is_null() {
                return Some(event);
            }
        }
    }
}
