//! Watches of servers that respond late, never, or with errors in every place.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use kube_follow::{CallTimeout, DEFAULT_SILENCE_TIMEOUT, Watch};

/// A server's response: a status code, and lines, each with the seconds to wait before it.
#[derive(Clone)]
struct Reply {
    code: u16,
    lines: Vec<(u64, String)>,
    /// The seconds from the last line to the end of the response; `None` if it does not end.
    ends: Option<u64>,
}

impl Reply {
    fn once(code: u16, body: &Value) -> Self {
        let lines = vec![(0, body.to_string())];
        Self {
            code,
            lines,
            ends: Some(0),
        }
    }

    fn list(version: &str, more: &str) -> Self {
        let metadata = json!({"resourceVersion": version, "continue": more});
        Self::once(
            200,
            &json!({"kind": "ConfigMapList", "metadata": metadata, "items": []}),
        )
    }

    fn refusal(code: u16, details: &Value) -> Self {
        Self::once(code, &status(code, details))
    }

    fn watch(lines: Vec<(u64, Value)>, ends: Option<u64>) -> Self {
        let lines = lines.into_iter().map(|(wait, line)| (wait, format!("{line}\n")));
        Self {
            code: 200,
            lines: lines.collect(),
            ends,
        }
    }
}

fn status(code: u16, details: &Value) -> Value {
    json!({"kind": "Status", "status": "Failure", "code": code, "reason": "", "message": "", "details": details})
}

fn bookmark(version: &str) -> Value {
    json!({"type": "BOOKMARK", "object": {"kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"resourceVersion": version}}})
}

/// Runs a watch for half a day on a server that sends these responses and then none. Returns the requests, each with
/// its time in seconds.
async fn requests(labels: Option<&str>, silence: Duration, replies: Vec<Reply>) -> Vec<(u64, String)> {
    let begun = Instant::now();
    let made = Arc::new(Mutex::new(Vec::new()));
    let (log, replies) = (made.clone(), Mutex::new(VecDeque::from(replies)));
    let server = tower::service_fn(move |request: Request<Body>| {
        let request = (begun.elapsed().as_secs(), request.uri().to_string());
        log.lock().push(request);
        let reply = replies.lock().pop_front();
        async move {
            let Some(reply) = reply else {
                return std::future::pending().await;
            };
            let frames = stream::iter(reply.lines).then(|(wait, line)| async move {
                sleep(Duration::from_secs(wait)).await;
                Ok::<_, io::Error>(Frame::data(Bytes::from(line)))
            });
            let end = stream::once(async move {
                match reply.ends {
                    Some(seconds) => sleep(Duration::from_secs(seconds)).await,
                    None => std::future::pending().await,
                }
                Ok(Frame::data(Bytes::new()))
            });
            let body = StreamBody::new(frames.chain(end).boxed());
            Ok::<_, io::Error>(Response::builder().status(reply.code).body(body).unwrap())
        }
    });
    let watch = Watch {
        labels: labels.map(str::to_owned),
        call_timeout: CallTimeout(Duration::from_secs(100_000)),
        silence_timeout: silence,
        ..Watch::new(Api::<ConfigMap>::namespaced(Client::new(server, "ns"), "ns"))
    };
    let _ = timeout(Duration::from_secs(43_200), watch.run(|_| {})).await;
    made.lock().clone()
}

/// Returns each request as a list or a watch, with its time in seconds.
async fn verbs(replies: Vec<Reply>) -> Vec<(u64, &'static str)> {
    let made = requests(None, DEFAULT_SILENCE_TIMEOUT, replies).await;
    let verb = |uri: String| {
        if uri.contains("watch=true") {
            "watch"
        } else {
            "list"
        }
    };
    made.into_iter().map(|(at, uri)| (at, verb(uri))).collect()
}

#[tokio::test(start_paused = true)]
async fn a_watch_lists_in_pages_and_then_watches() {
    let replies = vec![
        Reply::list("7", "next"),
        Reply::list("8", ""),
        Reply::watch(vec![(5, bookmark("9"))], Some(0)),
    ];
    for (silence, seconds) in [(130_000, 120), (8_000, 6), (500, 1)] {
        let made = requests(Some("a in (b)"), Duration::from_millis(silence), replies.clone()).await;
        let path = "/api/v1/namespaces/ns/configmaps?";
        let expected = [
            (0, format!("{path}&labelSelector=a+in+%28b%29&limit=500")),
            (
                0,
                format!("{path}&labelSelector=a+in+%28b%29&limit=500&continue=next"),
            ),
            (
                0,
                format!(
                    "{path}&watch=true&timeoutSeconds={seconds}&labelSelector=a+in+%28b%29\
                     &allowWatchBookmarks=true&resourceVersion=8"
                ),
            ),
        ];
        assert_eq!(made[..3], expected);
        if seconds == 120 {
            assert!(made[3].1.ends_with("resourceVersion=9"), "{made:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_requested_pause_is_kept() {
    let busy = Reply::refusal(429, &json!({"retryAfterSeconds": 60}));
    let replies = vec![
        busy.clone(),
        Reply::list("7", ""),
        busy,
        Reply::watch(vec![], None),
    ];
    let made = verbs(replies).await;
    assert_eq!(
        made[..4],
        [(0, "list"), (60, "list"), (60, "watch"), (120, "watch")]
    );
}

/// Servers end watches in a burst of changes, for which the buffer of a reader is too small.
#[tokio::test(start_paused = true)]
async fn a_watch_with_events_continues_at_once_however_often_it_ends() {
    let one_event = |version: u32| {
        let object =
            json!({"kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": version.to_string()}});
        let event = json!({"type": "MODIFIED", "object": object});
        Reply::watch(vec![(0, event)], Some(0))
    };
    let mut replies = vec![Reply::list("7", "")];
    replies.extend((8..28).map(one_event));
    let mut made = requests(None, DEFAULT_SILENCE_TIMEOUT, replies).await;
    assert_eq!(made.len(), 22);
    assert!(made.iter().all(|(at, _)| *at == 0), "{made:?}");
    let last = made.pop().unwrap().1;
    assert!(last.ends_with("resourceVersion=27"), "{last}");

    // The wait grows for watches that end without an event, even though earlier watches sent events.
    let mut replies = vec![Reply::list("7", ""), one_event(8), one_event(9)];
    replies.extend(vec![Reply::watch(vec![], Some(0)); 6]);
    let made = verbs(replies).await;
    let times: Vec<u64> = made.iter().map(|(at, _)| *at).collect();
    assert_eq!(times[..4], [0; 4]);
    assert!(times[9] >= 10, "{made:?}");
}

#[tokio::test(start_paused = true)]
async fn a_410_leads_to_a_list_wherever_it_comes() {
    let error = |code| json!({"type": "ERROR", "object": status(code, &Value::Null)});
    let as_event = |line| Reply::watch(vec![(5, line)], Some(0));
    let as_response = |code| Reply::refusal(code, &Value::Null);
    // A line that is a status instead of an event.
    let bare = |code| as_event(status(code, &Value::Null));
    for (at, gone, other) in [
        (5, as_event(error(410)), as_event(error(500))),
        (5, bare(410), bare(500)),
        (0, as_response(410), as_response(500)),
    ] {
        let made = verbs(vec![Reply::list("7", ""), gone]).await;
        assert_eq!(made, [(0, "list"), (0, "watch"), (at, "list")]);
        let made = verbs(vec![Reply::list("7", ""), Reply::watch(vec![], Some(5)), other]).await;
        assert_eq!(made[2..], [(5, "watch"), (5 + at, "watch")]);
    }
}

#[tokio::test(start_paused = true)]
async fn after_an_event_that_cannot_be_read_only_a_list_helps() {
    let event = json!({"type": "ADDED", "object": {"kind": "ConfigMap", "metadata": {"name": 3}}});
    for line in [event, json!("no event at all")] {
        let made = verbs(vec![Reply::list("7", ""), Reply::watch(vec![(5, line)], None)]).await;
        assert_eq!(made, [(0, "list"), (0, "watch"), (5, "list")]);
    }
}

/// The requested version may be one that does not exist yet.
#[tokio::test(start_paused = true)]
async fn a_server_whose_watches_send_nothing_is_listed_again() {
    let watched = |lines: Vec<(u64, Value)>| {
        let mut replies = vec![Reply::list("7", "")];
        let left = 120 - lines.iter().map(|(wait, _)| wait).sum::<u64>();
        replies.extend(vec![Reply::watch(lines, Some(left)); 4]);
        replies
    };
    let mute = verbs(watched(Vec::new())).await;
    assert_eq!(
        mute[..4],
        [(0, "list"), (0, "watch"), (120, "watch"), (240, "list")]
    );
    let speaks = verbs(watched(vec![(60, bookmark("7"))])).await;
    assert!(speaks[1..].iter().all(|(_, verb)| *verb == "watch"), "{speaks:?}");
    assert_eq!(speaks.len(), 6);
}
