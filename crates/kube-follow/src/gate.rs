//! A gate for all calls to a server, which is closed while the server is away.

use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::header::RETRY_AFTER;
use http::{Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tower::util::ServiceExt;
use tower::{BoxError, Layer, Service};

use crate::backoff::{MAX_WAIT, millis};
use crate::call::{Away, innermost};

mod state;

use state::{Phase, State};

/// The path of an attempt. Every client may read it, and the server needs no storage to answer.
const ATTEMPT_PATH: &str = "/version";

/// The timeout of an attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// The time without an answer to any call after which the server is suspected.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest time that a call waits at the gate. It leaves a call time for its answer within the usual timeouts.
const MAX_HOLD: Duration = Duration::from_secs(10);

/// A gate for the connection of a program to its server, as a layer of its client. It closes while the server is away:
/// calls then wait, and a single attempt after the other, with pauses of up to half a second, finds out when the server
/// is back.
///
/// A call without an answer is a reason to suspect the server: its connection is refused, reset or closed, its TLS
/// handshake fails, a proxy in between answers 502, 503 or 504, or no call at all is answered for 10 s. One attempt
/// (`GET /version`) then decides. If it is answered, the gate stays open, and the call fails as it would without a
/// gate. So neither a call that is stuck nor one API that is unavailable closes the gate.
///
/// The absence of the server and its return are logged with `tracing`, each in one line. A call that waits for 10 s, or
/// was lost with the connection, fails with [`CallError::Away`](crate::CallError::Away). Retry it at once, because it
/// will wait again.
///
/// Clones share their state. Calls that must not wait, such as the renewals of a lease, need a client without the gate.
///
/// ```no_run
/// # async fn is_async() -> kube::Result<()> {
/// use kube::Client;
/// use kube_follow::Gate;
///
/// let gate = Gate::new("my-program-7c9f");
/// let client = gate.client(Client::try_default().await?);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Gate(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// The phase has changed. It wakes the calls in the order in which they began to wait, so that they reach the server in
    /// that order; `tokio::sync::watch` would wake them in a random one.
    changed: Notify,
}

impl Default for Gate {
    fn default() -> Self {
        Self::new("")
    }
}

impl Gate {
    /// Creates an open gate. Give each program its own `key`, so that programs that lost the same server do not attempt
    /// to reach it at the same times.
    pub fn new(key: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        Self(Arc::new(Shared {
            state: Mutex::new(State::new(hasher.finish())),
            changed: Notify::new(),
        }))
    }

    /// Returns a client whose calls pass this gate. A client with layers of its own gets the gate as one of them.
    pub fn client(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let send = tower::service_fn(move |request: Request<Body>| {
            let client = client.clone();
            async move { client.send(request).await }
        });
        Client::new(self.layer(send), namespace)
    }

    /// Returns true while calls pass.
    pub fn is_open(&self) -> bool {
        self.0.phase() == Phase::Open
    }

    /// Counts a call as waiting in the log until the returned value is dropped.
    pub fn wait(&self) -> Waiting {
        self.0.change(|state| state.waiting += 1);
        Waiting(self.clone())
    }

    /// Waits until the gate is open, for at most 10 s or until `deadline`.
    ///
    /// # Errors
    /// The server is still away.
    pub async fn opened(&self, deadline: Instant) -> Result<(), crate::CallError> {
        self.hold(deadline).await.map_err(|Away| crate::CallError::Away)
    }

    async fn hold(&self, deadline: Instant) -> Result<(), Away> {
        if self.is_open() {
            return Ok(());
        }
        let _waiting = self.wait();
        let deadline = deadline.min(Instant::now() + MAX_HOLD);
        let opened = self.0.until(|phase| phase == Phase::Open);
        match tokio::time::timeout_at(deadline, opened).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Away),
        }
    }

    /// Suspects the server after a call without an answer, and starts the attempts to reach it through `service`.
    fn suspect<S, B>(&self, service: &S)
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
        B: Send + 'static,
    {
        if self.0.change(State::failed) {
            tokio::spawn(seek(Arc::downgrade(&self.0), service.clone()));
        }
    }

    /// Returns true if the server is away, once an attempt has decided it.
    async fn is_away(&self) -> bool {
        self.0.until(|phase| phase != Phase::Suspected).await == Phase::Closed
    }
}

impl Shared {
    fn phase(&self) -> Phase {
        self.state.lock().phase
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let before = state.phase;
        let result = change(&mut state);
        if state.phase != before {
            self.changed.notify_waiters();
        }
        result
    }

    /// Waits for one of the wanted phases, and returns it.
    async fn until(&self, is_wanted: impl Fn(Phase) -> bool) -> Phase {
        loop {
            // Made before the phase is read, so that no change is missed.
            let changed = self.changed.notified();
            let phase = self.phase();
            if is_wanted(phase) {
                return phase;
            }
            changed.await;
        }
    }
}

/// A call that waits, for the log.
#[derive(Debug)]
pub struct Waiting(Gate);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.change(|state| state.waiting -= 1);
    }
}

/// Attempts to reach the server until the gate is open or no client is left. An attempt that gets no answer does not
/// delay the next one, because the server may be back while its old connections are not.
async fn seek<S, B>(gate: Weak<Shared>, service: S)
where
    S: Service<Request<Body>, Response = Response<B>> + Clone,
    S::Error: Into<BoxError>,
{
    let mut attempts = FuturesUnordered::new();
    'seek: while let Some(pause) = next_attempt(&gate) {
        let mut due = pin!(sleep(pause));
        loop {
            let outcome = tokio::select! {
                biased;
                Some(outcome) = attempts.next() => outcome,
                () = &mut due => break,
            };
            let Some(gate) = gate.upgrade() else { return };
            match outcome {
                Ok(()) => {
                    if let Some(back) = gate.change(State::attempt_answered) {
                        let away_ms = millis(back.away);
                        tracing::info!(away_ms, waiting_calls = back.calls, "the API server is back");
                    }
                    continue 'seek;
                }
                Err(Missed { problem, retry_after }) => {
                    if gate.change(State::attempt_failed) {
                        tracing::warn!(problem, "the API server is away; all calls wait until it is back");
                    }
                    let until = Instant::now() + retry_after.unwrap_or_default();
                    if until > due.deadline() {
                        due.as_mut().reset(until);
                    }
                }
            }
        }
        attempts.push(attempt(service.clone()));
    }
}

fn next_attempt(gate: &Weak<Shared>) -> Option<Duration> {
    gate.upgrade()?.change(State::next_attempt)
}

/// An attempt without an answer of the server.
struct Missed {
    problem: String,
    /// The pause that a proxy in between requests.
    retry_after: Option<Duration>,
}

async fn attempt<S, B>(service: S) -> Result<(), Missed>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
{
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = http::Uri::from_static(ATTEMPT_PATH);
    let missed = |problem| Missed {
        problem,
        retry_after: None,
    };
    match timeout(ATTEMPT_TIMEOUT, service.oneshot(request)).await {
        Ok(Ok(answer)) if is_unavailable(answer.status()) => Err(Missed {
            problem: format!("the response is {}", answer.status()),
            retry_after: retry_after(&answer),
        }),
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(missed(innermost(&*error.into()))),
        Err(_) => Err(missed(format!(
            "no response within {} s",
            ATTEMPT_TIMEOUT.as_secs()
        ))),
    }
}

fn retry_after<B>(answer: &Response<B>) -> Option<Duration> {
    let seconds = answer.headers().get(RETRY_AFTER)?.to_str().ok()?;
    let seconds = Duration::from_secs(seconds.trim().parse().ok()?);
    Some(seconds.min(MAX_WAIT))
}

/// Returns true for the answers of a proxy that does not reach the server. The server itself sends them too.
fn is_unavailable(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
    )
}

impl<S> Layer<S> for Gate {
    type Service = Gated<S>;

    fn layer(&self, inner: S) -> Gated<S> {
        Gated {
            inner,
            gate: self.clone(),
        }
    }
}

/// A client service behind a [`Gate`].
#[derive(Clone, Debug)]
pub struct Gated<S> {
    inner: S,
    gate: Gate,
}

impl<S, B> Service<Request<Body>> for Gated<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // The inner service becomes ready after the wait at the gate.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (gate, inner) = (self.gate.clone(), self.inner.clone());
        Box::pin(async move {
            gate.hold(Instant::now() + MAX_HOLD).await?;
            let sent = Instant::now();
            let service = inner.clone();
            let call = async move { service.oneshot(request).await.map_err(Into::into) };
            let mut call = pin!(call);
            let answer = match timeout(SILENCE_TIMEOUT, &mut call).await {
                Ok(answer) => answer,
                Err(_) => {
                    if gate.0.change(|state| state.is_silent_since(sent)) {
                        gate.suspect(&inner);
                    }
                    call.await
                }
            };
            match answer {
                Ok(answer) if !is_unavailable(answer.status()) => {
                    gate.0.change(|state| state.answered(sent));
                    Ok(answer)
                }
                other => {
                    gate.suspect(&inner);
                    match gate.is_away().await {
                        true => Err(Away.into()),
                        false => other,
                    }
                }
            }
        })
    }
}

#[cfg(test)]
mod tests;
