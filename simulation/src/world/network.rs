//! The network between operators and the API server. It logs and counts all calls, and injects faults into them.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use http::{Request, Uri};
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use kube_memory::{Cluster, Endpoint};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;
use tower::Service;

use crate::call::{ApiResponse, Call, CallError, CurrentCall};
use crate::faults::watches::{DelayedWatch, EndingWatch, WatchEnds};
use crate::faults::{CallFault, WatchDelay};
use crate::world::history::History;

/// The maximum number of calls in ten seconds that get a response. It stops a storm of calls in which no simulated
/// time passes.
const MAX_RESPONSES_IN_TEN_SECONDS: u64 = 2_000;

/// Returns the fault of a call, if it has one.
type Rule = Box<dyn FnMut(&Call) -> Option<CallFault> + Send>;

/// Called with each call and its fault.
type Listener = Arc<dyn Fn(&Call, Option<&CallFault>) + Send + Sync>;

#[derive(Default)]
struct NetworkState {
    calls: Vec<Call>,
    count: u64,
    /// The number of calls except lists and watches.
    object_calls: u64,
    rules: Vec<Rule>,
    listener: Option<Listener>,
    watch_delay: Option<WatchDelay>,
    watch_ends: WatchEnds,
    /// The number of ended watches that have been renewed.
    renewed: u64,
    watches: u64,
    current_call: Option<Arc<CurrentCall>>,
    faults: BTreeMap<String, u64>,
    /// True if a fault hit the creation or a patch of an event, which may be lost.
    may_lack_events: bool,
    deletes_without_uid: Vec<String>,
    writes_without_change: Vec<String>,
    /// The operators that were killed by faults and not yet returned by `next_deaths`.
    dead: BTreeSet<usize>,
    /// The latest ten-second window with calls, and the number of calls in it.
    ten_seconds: (u64, u64),
    most_in_ten_seconds: u64,
    /// The number of additional calls that get a response in ten seconds.
    allowed: u64,
    operators: usize,
}

/// The network of all operators of a cluster. Clones share the same state.
#[derive(Clone)]
pub struct Network {
    cluster: Cluster,
    state: Arc<Mutex<NetworkState>>,
    operator_died: Arc<Notify>,
    history: History,
}

impl Network {
    /// Creates a network in front of a cluster. It writes calls and faults to `history`.
    pub fn new(cluster: &Cluster, history: History) -> Self {
        Self {
            cluster: cluster.clone(),
            state: Arc::default(),
            operator_died: Arc::default(),
            history,
        }
    }

    /// Returns a client for a new operator, the operator's number, and a switch that disconnects it permanently.
    pub fn connect(&self) -> (kube::Client, usize, Arc<AtomicBool>) {
        let dead = Arc::new(AtomicBool::new(false));
        let mut state = self.state.lock();
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

    /// Calls `rule` for each call from now on. The fault of the first rule that returns one is injected.
    pub fn add_rule(&self, rule: impl FnMut(&Call) -> Option<CallFault> + Send + 'static) {
        self.state.lock().rules.push(Box::new(rule));
    }

    /// Injects a fault into the next `times` calls with this verb and resource. An empty resource matches every
    /// resource.
    pub fn fail_next(&self, verb: &'static str, resource: &'static str, mut times: usize, fault: CallFault) {
        self.add_rule(move |call| {
            let hit = times > 0 && call.is(verb, resource);
            times -= usize::from(hit);
            hit.then(|| fault.clone())
        });
    }

    /// Delays the events of watches that start from now on.
    pub fn delay_watches(&self, delay: Option<WatchDelay>) {
        self.state.lock().watch_delay = delay;
    }

    /// Ends each watch after this many events from now on. `None` stops that.
    pub fn end_watches(&self, after: Option<u64>) {
        self.state.lock().watch_ends.end_after(after);
    }

    /// Returns the number of watches that were ended this way.
    pub fn ended_watches(&self) -> u64 {
        self.state.lock().watch_ends.count()
    }

    /// Calls `listener` for each call from now on, with its fault if it has one.
    pub(crate) fn listen(&self, listener: impl Fn(&Call, Option<&CallFault>) + Send + Sync + 'static) {
        self.state.lock().listener = Some(Arc::new(listener));
    }

    /// Raises the limit of calls in ten seconds by this many calls.
    pub fn allow_calls(&self, calls: u64) {
        self.state.lock().allowed = calls;
    }

    /// Stops injecting faults.
    pub fn heal(&self) {
        let mut state = self.state.lock();
        state.rules.clear();
        state.watch_delay = None;
        state.watch_ends.end_after(None);
    }

    /// Returns the calls since the last time this was called.
    pub fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.state.lock().calls)
    }

    /// Returns the number of calls with this verb and resource since the calls were last taken.
    pub fn count(&self, verb: &str, resource: &str) -> usize {
        self.state
            .lock()
            .calls
            .iter()
            .filter(|c| c.is(verb, resource))
            .count()
    }

    /// Returns the total number of calls.
    pub fn all_calls(&self) -> u64 {
        self.state.lock().count
    }

    /// Returns the number of calls except lists and watches.
    pub fn object_calls(&self) -> u64 {
        self.state.lock().object_calls
    }

    /// Returns the number of operators that were ever connected.
    pub fn operators(&self) -> u64 {
        self.state.lock().operators as u64
    }

    /// Returns the number of injected faults by label.
    pub fn faults(&self) -> BTreeMap<String, u64> {
        let state = self.state.lock();
        let ended = Some(state.watch_ends.count()).filter(|count| *count > 0);
        let ended = ended.map(|count| ("watch ended".to_owned(), count));
        state.faults.clone().into_iter().chain(ended).collect()
    }

    /// Returns true if an event may be lost, because a fault hit the call that sent it.
    pub fn may_lack_events(&self) -> bool {
        self.state.lock().may_lack_events
    }

    /// Returns the highest number of calls in ten seconds.
    pub fn most_in_ten_seconds(&self) -> u64 {
        self.state.lock().most_in_ten_seconds
    }

    /// Returns the deletes without a UID precondition.
    pub fn deletes_without_uid(&self) -> Vec<String> {
        self.state.lock().deletes_without_uid.clone()
    }

    /// Returns the patches that succeeded without a change.
    pub fn writes_without_change(&self) -> Vec<String> {
        self.state.lock().writes_without_change.clone()
    }

    /// Waits until a fault has killed an operator. Returns all operators that faults have killed since the last call.
    pub async fn next_deaths(&self) -> BTreeSet<usize> {
        loop {
            let dead = std::mem::take(&mut self.state.lock().dead);
            if !dead.is_empty() {
                return dead;
            }
            self.operator_died.notified().await;
        }
    }

    /// Returns a function that returns the call that the cluster is processing. The function holds no handle to the
    /// cluster, so the cluster may own it.
    pub(crate) fn current_call(&self) -> impl Fn() -> Option<Arc<CurrentCall>> + Send + 'static {
        let state = self.state.clone();
        move || {
            let state = state.lock();
            state.current_call.clone()
        }
    }

    /// Logs a call, and selects its fault.
    fn record(&self, call: &Call) -> Option<CallFault> {
        let mut state = self.state.lock();
        let mut fault = state.rules.iter_mut().find_map(|rule| rule(call));
        if state.ten_seconds.1 > MAX_RESPONSES_IN_TEN_SECONDS + state.allowed {
            fault = Some(CallFault::Lost);
        }
        state.calls.push(call.clone());
        state.count += 1;
        state.object_calls += u64::from(!matches!(call.verb, "list" | "watch" | "probe"));
        let now = self.history.now() / 10_000;
        // The renewal of a watch that a fault ended does not count as part of a storm.
        let renews = call.verb == "watch" && state.renewed < state.watch_ends.count();
        state.renewed += u64::from(renews);
        let before = if state.ten_seconds.0 == now {
            state.ten_seconds.1
        } else {
            0
        };
        state.ten_seconds = (now, before + u64::from(!renews));
        state.most_in_ten_seconds = state.most_in_ten_seconds.max(state.ten_seconds.1);
        if let Some(fault) = &fault {
            *state.faults.entry(fault.label()).or_default() += 1;
            state.may_lack_events |= call.resource == "events" && !matches!(fault, CallFault::Slow(..));
        }
        let listener = state.listener.clone();
        drop(state);
        if let Some(listener) = listener {
            listener(call, fault.as_ref());
        }
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
}

/// An operator's connection to the API server.
struct Connection {
    network: Network,
    endpoint: Endpoint,
    operator: usize,
    dead: Arc<AtomicBool>,
}

impl Service<Request<Body>> for Connection {
    type Response = ApiResponse;
    type Error = CallError;
    type Future = Pin<Box<dyn Future<Output = Result<ApiResponse, CallError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if self.dead.load(Ordering::Relaxed) {
            return Box::pin(pending());
        }
        let call = Call::from_request(self.operator, &request);
        let fault = self.network.record(&call);
        let is_watch = call.verb == "watch";
        let pending = PendingCall {
            network: self.network.clone(),
            endpoint: self.endpoint.clone(),
            sent: self.network.history.now(),
            call,
            request,
        };
        let (network, operator, dead) = (self.network.clone(), self.operator, self.dead.clone());
        let kill = move || {
            dead.store(true, Ordering::Relaxed);
            network.state.lock().dead.insert(operator);
            network.operator_died.notify_one();
        };
        match fault {
            None => Box::pin(pending.deliver()),
            Some(fault) => {
                let deliver = |versions_ago| pending.deliver_as_of(versions_ago);
                Box::pin(fault.inject(is_watch, deliver, kill))
            }
        }
    }
}

/// A call that has no response yet.
struct PendingCall {
    network: Network,
    endpoint: Endpoint,
    call: Call,
    sent: u64,
    request: Request<Body>,
}

impl PendingCall {
    /// Sends the call. The cluster responds at once.
    async fn deliver(self) -> Result<ApiResponse, CallError> {
        let Self {
            network,
            mut endpoint,
            call,
            sent,
            request,
        } = self;
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let uid = matches!(call.verb, "delete" | "patch")
            .then(|| precondition_uid(&body))
            .flatten();
        let is_patch = call.verb == "patch";
        let is_watch = call.verb == "watch";
        let (delay, ends) = {
            let mut state = network.state.lock();
            if call.verb == "delete" && uid.is_none() {
                let deleted = format!("{} {}", call.resource, call.name);
                state.deletes_without_uid.push(deleted);
            }
            state.watches += u64::from(is_watch);
            let number = state.watches;
            let delay = state.watch_delay.clone().filter(|_| is_watch);
            state.current_call = Some(Arc::new(CurrentCall { call, sent, uid }));
            let ends = Some(state.watch_ends.clone()).filter(|_| is_watch);
            (delay.map(|delay| (delay, number)), ends)
        };
        let version_before = is_patch.then(|| network.cluster.resource_version());
        let answer = endpoint.call(Request::from_parts(parts, Full::new(body))).await?;
        let mut state = network.state.lock();
        let done = state.current_call.take();
        if version_before == Some(network.cluster.resource_version()) && answer.status().is_success() {
            state
                .writes_without_change
                .extend(done.map(|done| format!("{} {}", done.call.verb_and_resource(), done.call.name)));
        }
        drop(state);
        Ok(answer.map(|body| {
            let body = body.map_err(CallError::from);
            let body = match delay {
                Some((delay, number)) => DelayedWatch::new(body, &delay, number).boxed_unsync(),
                None => body.boxed_unsync(),
            };
            match ends {
                Some(ends) => EndingWatch::new(body, ends).boxed_unsync(),
                None => body,
            }
        }))
    }

    /// Sends the call. A list returns the state of this many versions ago, or 410 if the cluster no longer has that
    /// state.
    async fn deliver_as_of(mut self, versions_ago: u64) -> Result<ApiResponse, CallError> {
        if versions_ago > 0 {
            let now = self.network.cluster.resource_version();
            let version = now.saturating_sub(versions_ago).max(1);
            let uri = self.request.uri();
            let (path, query) = (uri.path(), &self.call.query);
            let uri = format!("{path}?{query}&resourceVersion={version}&resourceVersionMatch=Exact");
            *self.request.uri_mut() = uri.parse::<Uri>()?;
        }
        self.deliver().await
    }
}

/// Returns the UID precondition of a delete or a patch, which limits the call to that object.
fn precondition_uid(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let uid = body
        .pointer("/preconditions/uid")
        .or_else(|| body.pointer("/metadata/uid"));
    Some(uid?.as_str()?.to_owned())
}
