use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use tokio::sync::watch;

use super::*;
use crate::{CallError, CallTimeout};

/// The behavior of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Well,
    /// Every connection fails.
    Lost,
    /// A proxy in between answers every call with this code.
    Unavailable(u16),
    Silent,
    /// Calls other than attempts fail like this.
    CallsLost,
    CallsUnavailable,
    CallsSilent,
}

#[derive(Clone)]
struct Server(Arc<(watch::Sender<Mode>, AtomicUsize)>);

impl Server {
    fn start() -> (Self, Gate, Client) {
        let server = Self(Arc::new((watch::Sender::new(Mode::Well), AtomicUsize::new(0))));
        let (gate, inner) = (Gate::default(), server.clone());
        let service = tower::service_fn(move |request: Request<Body>| inner.clone().answer(request));
        let client = Client::new(gate.layer(service), "ns");
        (server, gate, client)
    }

    fn set(&self, mode: Mode) {
        self.0.0.send_replace(mode);
    }

    /// Returns the number of requests since the last call of this function.
    fn requests(&self) -> usize {
        self.0.1.swap(0, Ordering::SeqCst)
    }

    async fn answer(self, request: Request<Body>) -> io::Result<Response<Body>> {
        self.0.1.fetch_add(1, Ordering::SeqCst);
        let mode = *self.0.0.borrow();
        let is_attempt = request.uri().path() == ATTEMPT_PATH;
        let code = match (mode, is_attempt) {
            (Mode::Lost, _) | (Mode::CallsLost, false) => return Err(io::ErrorKind::ConnectionReset.into()),
            (Mode::Silent, _) | (Mode::CallsSilent, false) => return std::future::pending().await,
            (Mode::Unavailable(code), _) => code,
            (Mode::CallsUnavailable, false) => 503,
            _ => 200,
        };
        sleep(Duration::from_millis(1)).await;
        let body = format!(
            r#"{{"kind": "Status", "status": "Failure", "message": "", "reason": "", "code": {code}}}"#
        );
        let answer = Response::builder().status(code);
        Ok(answer.body(Body::from(body.into_bytes())).unwrap())
    }
}

async fn call(client: &Client) -> Result<(), CallError> {
    let request = Request::get("/api/v1/namespaces/ns/pods/p")
        .body(Vec::new())
        .unwrap();
    CallTimeout::default()
        .call(client.request_text(request))
        .await
        .map(drop)
}

/// Makes this many calls at once, each again until it succeeds. Returns when all have succeeded.
async fn calls(client: &Client, count: usize) {
    let one = async || while call(client).await.is_err() {};
    join_all((0..count).map(|_| one())).await;
}

#[tokio::test(start_paused = true)]
async fn all_calls_wait_while_the_server_is_away_and_go_on_within_half_a_second_of_its_return() {
    for mode in [
        Mode::Lost,
        Mode::Unavailable(503),
        Mode::Unavailable(502),
        Mode::Silent,
    ] {
        let (server, gate, client) = Server::start();
        server.set(mode);
        let work = tokio::spawn(async move { calls(&client, 500).await });
        // The calls that are sent before the first failure: an operator has a limit of 16, and a watch for each kind.
        sleep(Duration::from_secs(40)).await;
        assert!(!gate.is_open(), "{mode:?}");
        server.requests();
        sleep(Duration::from_secs(100)).await;
        let requests = server.requests();
        assert!(
            (200..=300).contains(&requests),
            "{mode:?}: {requests} attempts in 100 s"
        );
        server.set(Mode::Well);
        let back = Instant::now();
        work.await.unwrap();
        assert!(
            back.elapsed() <= Duration::from_millis(500),
            "{mode:?}: {:?}",
            back.elapsed()
        );
        assert!(server.requests() <= 502, "each call once, and an attempt");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_come_after_the_first_failure_are_not_sent() {
    let (server, _, client) = Server::start();
    server.set(Mode::Lost);
    assert!(matches!(call(&client).await, Err(CallError::Away)));
    let late = join_all((0..100).map(|_| timeout(Duration::from_millis(1), call(&client))));
    assert!(late.await.iter().all(Result::is_err));
    assert_eq!(server.requests(), 2, "the call and the first attempt");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_call_keeps_its_own_deadline_and_otherwise_fails_before_the_usual_one() {
    let (server, gate, client) = Server::start();
    server.set(Mode::Lost);
    call(&client).await.unwrap_err();
    let begun = Instant::now();
    let short = CallTimeout(Duration::from_secs(3));
    let request = Request::get("/").body(Vec::new()).unwrap();
    let answer = short.call(client.request_text(request)).await;
    assert!(matches!(answer, Err(CallError::Timeout(_))));
    assert_eq!(begun.elapsed(), Duration::from_secs(3));
    assert!(matches!(call(&client).await, Err(CallError::Away)));
    assert_eq!(begun.elapsed(), Duration::from_secs(3) + MAX_HOLD);
    assert!(gate.opened(begun + Duration::from_secs(18)).await.is_err());
    assert_eq!(begun.elapsed(), Duration::from_secs(18));
}

#[tokio::test(start_paused = true)]
async fn a_call_or_an_api_that_fails_alone_closes_no_gate() {
    for (mode, code) in [(Mode::CallsLost, None), (Mode::CallsUnavailable, Some(503))] {
        let (server, gate, client) = Server::start();
        server.set(mode);
        for _ in 0..20 {
            let error = call(&client).await.unwrap_err();
            assert!(!matches!(error, CallError::Away), "{mode:?}");
            assert_eq!(error.code(), code);
            assert!(gate.is_open(), "{mode:?}");
        }
        assert!(server.requests() <= 40, "at most one attempt for each call");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_stuck_gets_its_own_timeout() {
    let (server, gate, client) = Server::start();
    server.set(Mode::CallsSilent);
    let begun = Instant::now();
    assert!(matches!(call(&client).await, Err(CallError::Timeout(_))));
    assert_eq!(begun.elapsed(), CallTimeout::default().0);
    assert!(gate.is_open());
    assert_eq!(server.requests(), 2, "the call and an attempt after 10 s");
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_away_after_ten_seconds_and_an_attempt() {
    let (server, gate, client) = Server::start();
    server.set(Mode::Silent);
    let stuck = tokio::spawn(async move { call(&client).await });
    sleep(SILENCE_TIMEOUT + Duration::from_millis(1)).await;
    assert!(!gate.is_open(), "suspected");
    sleep(ATTEMPT_TIMEOUT).await;
    assert!(!gate.is_open());
    server.set(Mode::Well);
    sleep(Duration::from_millis(500)).await;
    assert!(gate.is_open());
    assert!(
        matches!(stuck.await.unwrap(), Err(CallError::Timeout(_))),
        "its answer never came"
    );
}

#[tokio::test(start_paused = true)]
async fn the_pause_that_a_proxy_requests_is_kept() {
    let gate = Gate::default();
    let count = Arc::new(AtomicUsize::new(0));
    let requests = count.clone();
    let service = tower::service_fn(move |_: Request<Body>| {
        requests.fetch_add(1, Ordering::SeqCst);
        let answer = Response::builder().status(503).header(RETRY_AFTER, "60");
        std::future::ready(Ok::<_, BoxError>(answer.body(Body::empty()).unwrap()))
    });
    let client = Client::new(gate.layer(service), "ns");
    assert!(matches!(call(&client).await, Err(CallError::Away)));
    sleep(Duration::from_secs(59)).await;
    assert_eq!(count.load(Ordering::SeqCst), 2);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn attempts_end_with_the_last_client() {
    let (server, gate, client) = Server::start();
    server.set(Mode::Lost);
    call(&client).await.unwrap_err();
    drop((client, gate));
    // The client's worker task ends.
    sleep(Duration::from_secs(1)).await;
    server.requests();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(server.requests(), 0);
}

#[test]
fn a_refusal_of_the_server_is_an_answer() {
    let refused = CallError::from(kube::Error::Api(Box::default()));
    assert!(!matches!(refused, CallError::Away));
}
