//! Between an operator's client and the API: a log of all calls, and faults.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, pending};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use kube_memory::{Cluster, Endpoint};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::sleep;
use tower::Service;

use crate::call::{Call, Cause};
use crate::fault::Fault;
use crate::history::History;
use crate::stream::{Lag, Lagging};

/// So many calls in ten seconds are answered, and no more: a storm in which no time passes would have no end.
const STORM: u64 = 2_000;

type Rule = Box<dyn FnMut(&Call) -> Option<Fault> + Send>;

/// What a call may fail with, short of an answer.
pub(crate) type Broken = Box<dyn std::error::Error + Send + Sync>;

#[derive(Default)]
struct State {
    calls: Vec<Call>,
    count: u64,
    /// Those that neither list nor watch.
    work: u64,
    rules: Vec<Rule>,
    lag: Option<Lag>,
    watches: u64,
    cause: Option<Arc<Cause>>,
    faults: BTreeMap<String, u64>,
    /// Deletes without a UID.
    blind: Vec<String>,
    /// Writes that changed nothing.
    vain: Vec<String>,
    dead: BTreeSet<usize>,
    /// The calls of these ten seconds, and of the ten that had most.
    busy: (u64, u64),
    busiest: u64,
    /// So many calls more are no storm.
    expected: u64,
    operators: usize,
}

/// All that operators of one cluster send.
#[derive(Clone)]
pub struct Network {
    cluster: Cluster,
    state: Arc<Mutex<State>>,
    died: Arc<Notify>,
    history: History,
}

impl Network {
    /// A network in front of a cluster, that writes calls and faults into `history`.
    pub fn new(cluster: &Cluster, history: History) -> Self {
        Self {
            cluster: cluster.clone(),
            state: Arc::default(),
            died: Arc::default(),
            history,
        }
    }

    /// A new connection of a new operator, its number, and the switch that ends it.
    pub fn connect(&self) -> (kube::Client, usize, Arc<AtomicBool>) {
        let dead = Arc::new(AtomicBool::new(false));
        let mut state = self.state();
        let operator = state.operators;
        state.operators += 1;
        let connection = Connection {
            network: self.clone(),
            endpoint: self.cluster.endpoint(),
            operator,
            dead: dead.clone(),
        };
        (kube::Client::new(connection, "default"), operator, dead)
    }

    /// Lets `rule` decide about each call from now on; the first rule with an opinion counts.
    pub fn rule(&self, rule: impl FnMut(&Call) -> Option<Fault> + Send + 'static) {
        self.state().rules.push(Box::new(rule));
    }

    /// Takes so many calls more in ten seconds for no storm.
    pub fn expect(&self, calls: u64) {
        self.state().expected = calls;
    }

    /// Does this to the next `times` calls of this kind.
    pub fn fault(&self, verb: &'static str, resource: &'static str, mut times: usize, fault: Fault) {
        self.rule(move |call| {
            let hit = times > 0 && call.is(verb, resource);
            times -= usize::from(hit);
            hit.then(|| fault.clone())
        });
    }

    /// Lets watches lag from now on, those that begin later.
    pub fn lag(&self, lag: Option<Lag>) {
        self.state().lag = lag;
    }

    /// No more faults.
    pub fn heal(&self) {
        let mut state = self.state();
        state.rules.clear();
        state.lag = None;
    }

    /// The calls since this was last asked.
    pub fn take(&self) -> Vec<Call> {
        std::mem::take(&mut self.state().calls)
    }

    /// How many such calls there were since the calls were last taken.
    pub fn count(&self, verb: &str, resource: &str) -> usize {
        self.state().calls.iter().filter(|c| c.is(verb, resource)).count()
    }

    /// How many calls there were in all.
    pub fn total(&self) -> u64 {
        self.state().count
    }

    /// How many of them neither listed nor watched.
    pub fn work(&self) -> u64 {
        self.state().work
    }

    /// How many operators there were.
    pub fn operators(&self) -> u64 {
        self.state().operators as u64
    }

    /// How many faults there were, by kind.
    pub fn faults(&self) -> BTreeMap<String, u64> {
        self.state().faults.clone()
    }

    /// The most calls in ten seconds.
    pub fn busiest(&self) -> u64 {
        self.state().busiest
    }

    /// The deletes that named no UID.
    pub fn blind(&self) -> Vec<String> {
        self.state().blind.clone()
    }

    /// The patches that were taken and changed nothing.
    pub fn vain(&self) -> Vec<String> {
        self.state().vain.clone()
    }

    /// Comes when a fault has killed an operator, with all that are dead.
    pub async fn died(&self) -> BTreeSet<usize> {
        loop {
            let dead = std::mem::take(&mut self.state().dead);
            if !dead.is_empty() {
                return dead;
            }
            self.died.notified().await;
        }
    }

    /// Tells the call that is being carried out. Holds nothing of the cluster, which may hold it.
    pub(crate) fn causes(&self) -> impl Fn() -> Option<Arc<Cause>> + Send + 'static {
        let state = self.state.clone();
        move || state.lock().unwrap_or_else(PoisonError::into_inner).cause.clone()
    }

    fn judge(&self, call: &Call) -> Option<Fault> {
        let mut state = self.state();
        let mut fault = state.rules.iter_mut().find_map(|rule| rule(call));
        if state.busy.1 > STORM + state.expected {
            fault = Some(Fault::Lost);
        }
        state.calls.push(call.clone());
        state.count += 1;
        state.work += u64::from(!matches!(call.verb, "list" | "watch"));
        let tens = self.history.now() / 10_000;
        state.busy = if state.busy.0 == tens {
            (tens, state.busy.1 + 1)
        } else {
            (tens, 1)
        };
        state.busiest = state.busiest.max(state.busy.1);
        if let Some(fault) = &fault {
            *state.faults.entry(fault.kind()).or_default() += 1;
        }
        drop(state);
        let Call {
            operator,
            verb,
            resource,
            name,
            ..
        } = call;
        let fault_text = fault.as_ref().map(|f| format!(": {f:?}")).unwrap_or_default();
        self.history
            .note(format_args!("op{operator} {verb} {resource} {name}{fault_text}"));
        fault
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Connection {
    network: Network,
    endpoint: Endpoint,
    operator: usize,
    dead: Arc<AtomicBool>,
}

type Answer = Response<UnsyncBoxBody<Bytes, Broken>>;
type Answered = Pin<Box<dyn Future<Output = Result<Answer, Broken>> + Send>>;

impl Service<Request<Body>> for Connection {
    type Response = Answer;
    type Error = Broken;
    type Future = Answered;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Answered {
        if self.dead.load(Ordering::Relaxed) {
            return Box::pin(pending());
        }
        let call = Call::of(self.operator, &request);
        let fault = self.network.judge(&call);
        let request = Pending {
            network: self.network.clone(),
            endpoint: self.endpoint.clone(),
            sent: self.network.history.now(),
            call,
            request,
        };
        let dead = self.dead.clone();
        Box::pin(request.meet(fault, dead))
    }
}

/// A call on its way.
struct Pending {
    network: Network,
    endpoint: Endpoint,
    call: Call,
    sent: u64,
    request: Request<Body>,
}

impl Pending {
    async fn meet(self, fault: Option<Fault>, dead: Arc<AtomicBool>) -> Result<Answer, Broken> {
        let network = self.network.clone();
        let operator = self.call.operator;
        let die = move || {
            dead.store(true, Ordering::Relaxed);
            network.state().dead.insert(operator);
            network.died.notify_one();
        };
        match fault {
            None => self.arrive().await,
            Some(Fault::Refused(code, reason)) => refusal(code, reason),
            Some(Fault::Garbled(code, reason)) => {
                self.arrive().await?;
                refusal(code, reason)
            }
            Some(Fault::Throttled(after)) => {
                let mut answer = refusal(429, "TooManyRequests")?;
                let value = http::HeaderValue::from_static(after);
                answer.headers_mut().insert(http::header::RETRY_AFTER, value);
                Ok(answer)
            }
            Some(Fault::Busy(seconds)) => {
                let mut status = status("Failure", 429, "TooManyRequests");
                status["details"] = json!({"retryAfterSeconds": seconds});
                text(429, status.to_string())
            }
            Some(Fault::Reset) => Err(reset()),
            Some(Fault::ResetAfter) => {
                self.arrive().await?;
                Err(reset())
            }
            Some(Fault::Lost) => pending().await,
            Some(Fault::Unanswered) => {
                self.arrive().await?;
                pending().await
            }
            Some(Fault::Late(wait)) => {
                tokio::spawn(async move {
                    sleep(Duration::from_millis(wait)).await;
                    let _ = self.arrive().await;
                });
                pending().await
            }
            Some(Fault::Truncated) => self.halved().await,
            Some(Fault::Nonsense) => {
                self.arrive().await?;
                text(200, "<html><body>It works!</body></html>".to_owned())
            }
            Some(Fault::Status) => {
                self.arrive().await?;
                text(200, status("Success", 200, "OK").to_string())
            }
            Some(Fault::Slow(before, after)) => {
                sleep(Duration::from_millis(before)).await;
                let answer = self.arrive().await;
                sleep(Duration::from_millis(after)).await;
                answer
            }
            Some(Fault::Gone) => {
                let event = json!({"type": "ERROR", "object": status("Failure", 410, "Expired")});
                text(200, format!("{event}\n"))
            }
            Some(Fault::Stale(versions)) => self.stale(versions).await,
            Some(Fault::DiesBefore) => {
                die();
                pending().await
            }
            Some(Fault::DiesAfter) => {
                let _ = self.arrive().await;
                die();
                pending().await
            }
        }
    }

    /// Reaches the cluster, which answers at once.
    async fn arrive(self) -> Result<Answer, Broken> {
        let Self {
            network,
            mut endpoint,
            call,
            sent,
            request,
        } = self;
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let uid = (call.verb == "delete").then(|| named_uid(&body)).flatten();
        let call_is_patch = call.verb == "patch";
        let lag = {
            let mut state = network.state();
            if call.verb == "delete" && uid.is_none() {
                state.blind.push(format!("{} {}", call.resource, call.name));
            }
            state.watches += u64::from(call.verb == "watch");
            let number = state.watches;
            let lag = state.lag.clone().filter(|_| call.verb == "watch");
            state.cause = Some(Arc::new(Cause { call, sent, uid }));
            lag.map(|lag| (lag, number))
        };
        let patched = call_is_patch.then(|| network.cluster.resource_version());
        let answer = endpoint.call(Request::from_parts(parts, Full::new(body))).await?;
        let mut state = network.state();
        let cause = state.cause.take();
        if patched == Some(network.cluster.resource_version()) && answer.status().is_success() {
            state
                .vain
                .extend(cause.map(|c| format!("{} {}", c.call.kind(), c.call.name)));
        }
        drop(state);
        Ok(answer.map(|body| {
            let body = body.map_err(Broken::from);
            match lag {
                Some((lag, number)) => Lagging::new(body, &lag, number).boxed_unsync(),
                None => body.boxed_unsync(),
            }
        }))
    }

    async fn halved(self) -> Result<Answer, Broken> {
        let watches = self.call.verb == "watch";
        let answer = self.arrive().await?;
        if watches {
            // A line that is cut through ends a watch like any other end.
            return text(200, "{\"type\":\"MODIFIED\",\"obj".to_owned());
        }
        let (parts, body) = answer.into_parts();
        let whole = body.collect().await?.to_bytes();
        let half = whole.slice(..whole.len() / 2);
        Ok(Response::from_parts(parts, full(half)))
    }

    /// Asks for an older state. If that is forgotten, the answer is 410.
    async fn stale(mut self, versions: u64) -> Result<Answer, Broken> {
        let version = self.network.cluster.resource_version().saturating_sub(versions);
        let uri = self.request.uri();
        let query = format!(
            "{}&resourceVersion={}&resourceVersionMatch=Exact",
            self.call.query,
            version.max(1)
        );
        *self.request.uri_mut() = format!("{}?{query}", uri.path()).parse::<Uri>()?;
        self.arrive().await
    }
}

/// The UID that a delete insists on.
fn named_uid(body: &[u8]) -> Option<String> {
    let options: Value = serde_json::from_slice(body).ok()?;
    Some(options.pointer("/preconditions/uid")?.as_str()?.to_owned())
}

fn reset() -> Broken {
    Box::new(io::Error::new(
        io::ErrorKind::ConnectionReset,
        "injected: connection reset",
    ))
}

fn status(outcome: &str, code: u16, reason: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": outcome,
        "code": code, "reason": reason, "message": format!("injected: {reason}"),
    })
}

fn refusal(code: u16, reason: &str) -> Result<Answer, Broken> {
    text(code, status("Failure", code, reason).to_string())
}

fn text(code: u16, body: String) -> Result<Answer, Broken> {
    let mut answer = Response::new(full(body.into()));
    *answer.status_mut() = http::StatusCode::from_u16(code)?;
    Ok(answer)
}

fn full(body: Bytes) -> UnsyncBoxBody<Bytes, Broken> {
    Full::new(body).map_err(Broken::from).boxed_unsync()
}
