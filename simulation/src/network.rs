//! The network between operators and the API server: it logs and counts all calls, and injects faults into them.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use http::{Request, Uri};
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use kube_memory::{Cluster, Endpoint};
use serde_json::Value;
use tokio::sync::Notify;
use tower::Service;

use crate::call::{Answer, Call, CallError, CurrentCall};
use crate::faults::watches::{DelayedWatch, EndingWatch, WatchEnds};
use crate::faults::{CallFault, WatchDelay};
use crate::history::History;

/// So many calls in ten seconds are answered, and no more: a storm of calls in which no time passes would not end.
const MOST_ANSWERED: u64 = 2_000;

/// Decides whether a call has a fault.
type Rule = Box<dyn FnMut(&Call) -> Option<CallFault> + Send>;

/// Is told of each call, and of its fault.
type Listener = Arc<dyn Fn(&Call, Option<&CallFault>) + Send + Sync>;

#[derive(Default)]
struct NetworkState {
    calls: Vec<Call>,
    count: u64,
    /// The calls that are no list and no watch.
    object_calls: u64,
    rules: Vec<Rule>,
    listener: Option<Listener>,
    watch_delay: Option<WatchDelay>,
    watch_ends: WatchEnds,
    /// How many of the watches that this ended have been renewed.
    renewed: u64,
    watches: u64,
    current_call: Option<Arc<CurrentCall>>,
    faults: BTreeMap<String, u64>,
    deletes_without_uid: Vec<String>,
    writes_without_change: Vec<String>,
    /// The operators that faults have killed and nobody has asked for.
    dead: BTreeSet<usize>,
    /// The latest ten seconds in which there were calls, and how many.
    ten_seconds: (u64, u64),
    most_in_ten_seconds: u64,
    /// So many calls more are answered in ten seconds.
    allowed: u64,
    operators: usize,
}

/// The network of all operators of a cluster. Clones are handles to the same.
#[derive(Clone)]
pub struct Network {
    cluster: Cluster,
    state: Arc<Mutex<NetworkState>>,
    operator_died: Arc<Notify>,
    history: History,
}

impl Network {
    /// A network in front of a cluster, which writes calls and faults into `history`.
    pub fn new(cluster: &Cluster, history: History) -> Self {
        Self {
            cluster: cluster.clone(),
            state: Arc::default(),
            operator_died: Arc::default(),
            history,
        }
    }

    /// A client for a new operator, the operator's number, and a switch that cuts it off for good.
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

    /// Asks `rule` about each call from now on. The fault of the first rule that names one is injected.
    pub fn add_rule(&self, rule: impl FnMut(&Call) -> Option<CallFault> + Send + 'static) {
        self.state().rules.push(Box::new(rule));
    }

    /// Injects a fault into the next `times` calls with this verb and resource; an empty resource stands for all.
    pub fn fail_next(&self, verb: &'static str, resource: &'static str, mut times: usize, fault: CallFault) {
        self.add_rule(move |call| {
            let hit = times > 0 && call.is(verb, resource);
            times -= usize::from(hit);
            hit.then(|| fault.clone())
        });
    }

    /// Delays the events of watches that begin from now on.
    pub fn delay_watches(&self, delay: Option<WatchDelay>) {
        self.state().watch_delay = delay;
    }

    /// Ends each watch, from now on, as soon as it has told so many events.
    pub fn end_watches(&self, after: Option<u64>) {
        self.state().watch_ends.end_after(after);
    }

    /// How many watches have ended because they had told so many events.
    pub fn ended_watches(&self) -> u64 {
        self.state().watch_ends.count()
    }

    /// Tells `listener` of each call from now on, and of its fault if it has one.
    pub(crate) fn listen(&self, listener: impl Fn(&Call, Option<&CallFault>) + Send + Sync + 'static) {
        self.state().listener = Some(Arc::new(listener));
    }

    /// Answers so many calls more in ten seconds before it takes them for a storm.
    pub fn allow_calls(&self, calls: u64) {
        self.state().allowed = calls;
    }

    /// Injects no more faults.
    pub fn heal(&self) {
        let mut state = self.state();
        state.rules.clear();
        state.watch_delay = None;
        state.watch_ends.end_after(None);
    }

    /// Takes the calls since this was last called.
    pub fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.state().calls)
    }

    /// How many calls with this verb and resource there were since the calls were last taken.
    pub fn count(&self, verb: &str, resource: &str) -> usize {
        self.state().calls.iter().filter(|c| c.is(verb, resource)).count()
    }

    /// How many calls there were in all.
    pub fn all_calls(&self) -> u64 {
        self.state().count
    }

    /// How many of them were no list and no watch.
    pub fn object_calls(&self) -> u64 {
        self.state().object_calls
    }

    /// How many operators there were.
    pub fn operators(&self) -> u64 {
        self.state().operators as u64
    }

    /// How many faults were injected, by their labels.
    pub fn faults(&self) -> BTreeMap<String, u64> {
        let state = self.state();
        let ended = Some(state.watch_ends.count()).filter(|count| *count > 0);
        let ended = ended.map(|count| ("watch ended".to_owned(), count));
        state.faults.clone().into_iter().chain(ended).collect()
    }

    /// The most calls in ten seconds.
    pub fn most_in_ten_seconds(&self) -> u64 {
        self.state().most_in_ten_seconds
    }

    /// The deletes that had no UID as a precondition.
    pub fn deletes_without_uid(&self) -> Vec<String> {
        self.state().deletes_without_uid.clone()
    }

    /// The patches that succeeded and changed nothing.
    pub fn writes_without_change(&self) -> Vec<String> {
        self.state().writes_without_change.clone()
    }

    /// Waits until a fault has killed an operator, and returns all that faults have killed since the last time.
    pub async fn next_deaths(&self) -> BTreeSet<usize> {
        loop {
            let dead = std::mem::take(&mut self.state().dead);
            if !dead.is_empty() {
                return dead;
            }
            self.operator_died.notified().await;
        }
    }

    /// Returns a function that says which call the cluster is carrying out. It holds no handle to the cluster, so the
    /// cluster may hold it.
    pub(crate) fn current_call(&self) -> impl Fn() -> Option<Arc<CurrentCall>> + Send + 'static {
        let state = self.state.clone();
        move || {
            let state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.current_call.clone()
        }
    }

    /// Logs a call, and chooses its fault.
    fn record(&self, call: &Call) -> Option<CallFault> {
        let mut state = self.state();
        let mut fault = state.rules.iter_mut().find_map(|rule| rule(call));
        if state.ten_seconds.1 > MOST_ANSWERED + state.allowed {
            fault = Some(CallFault::Lost);
        }
        state.calls.push(call.clone());
        state.count += 1;
        state.object_calls += u64::from(!matches!(call.verb, "list" | "watch"));
        let now = self.history.now() / 10_000;
        // A watch that was ended is renewed, as often as that is.
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

    fn state(&self) -> MutexGuard<'_, NetworkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
    type Response = Answer;
    type Error = CallError;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, CallError>> + Send>>;

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
            network.state().dead.insert(operator);
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

/// A call that is not answered yet.
struct PendingCall {
    network: Network,
    endpoint: Endpoint,
    call: Call,
    sent: u64,
    request: Request<Body>,
}

impl PendingCall {
    /// Carries it out; the cluster answers at once.
    async fn deliver(self) -> Result<Answer, CallError> {
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
            let mut state = network.state();
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
        let mut state = network.state();
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

    /// Carries it out; a list shows the state of so many versions ago. If the cluster has forgotten it, the answer is
    /// 410.
    async fn deliver_as_of(mut self, versions_ago: u64) -> Result<Answer, CallError> {
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

/// The UID that a delete or a patch names, so that it concerns no other object.
fn precondition_uid(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let uid = body
        .pointer("/preconditions/uid")
        .or_else(|| body.pointer("/metadata/uid"));
    Some(uid?.as_str()?.to_owned())
}
