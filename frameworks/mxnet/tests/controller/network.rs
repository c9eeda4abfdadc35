//! Between an operator's client and the API: a log of all calls, and faults.

use std::convert::Infallible;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use serde_json::json;
use tokio::sync::Notify;
use tower::Service;
use training_job::memory::{Cluster, Endpoint};

/// One call of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// `list`, `watch`, `get`, `create`, `patch`, `delete`.
    pub(crate) verb: &'static str,
    /// `pods`, `mxjobs/status`, …
    pub(crate) resource: String,
    /// The object, if the path names one.
    pub(crate) name: String,
    /// The query.
    pub(crate) query: String,
}

impl Call {
    /// Whether this is such a call; an empty resource stands for all.
    pub(crate) fn is(&self, verb: &str, resource: &str) -> bool {
        self.verb == verb && (resource.is_empty() || self.resource == resource)
    }

    /// Whether it changes something.
    pub(crate) fn writes(&self) -> bool {
        !matches!(self.verb, "list" | "watch" | "get")
    }

    fn of(request: &Request<Body>) -> Self {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let parts: Vec<&str> = request.uri().path().trim_matches('/').split('/').collect();
        let parts = if parts[0] == "api" {
            &parts[2..]
        } else {
            &parts[3..]
        };
        let parts = match parts {
            ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
            all => all,
        };
        let mut resource = parts[0].to_owned();
        let name = parts.get(1).copied().unwrap_or_default().to_owned();
        if let Some(sub) = parts.get(2) {
            resource = format!("{resource}/{sub}");
        }
        let verb = match *request.method() {
            Method::GET if query.contains("watch=true") => "watch",
            Method::GET if name.is_empty() => "list",
            Method::GET => "get",
            Method::POST => "create",
            Method::PATCH => "patch",
            Method::PUT => "update",
            _ => "delete",
        };
        Self {
            verb,
            resource,
            name,
            query,
        }
    }
}

/// What happens to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is refused with this code and reason.
    Refused(u16, &'static str),
    /// It takes effect, and then the answer is this.
    Garbled(u16, &'static str),
    /// It never arrives, and no answer comes.
    Lost,
    /// It takes effect, and no answer comes.
    Unanswered,
    /// The operator dies as it calls.
    DiesBefore,
    /// The operator dies before it has the answer.
    DiesAfter,
}

type Rule = Box<dyn FnMut(&Call) -> Option<Fault> + Send>;

#[derive(Default)]
struct State {
    calls: Vec<Call>,
    rules: Vec<Rule>,
}

/// All that operators of one cluster send.
#[derive(Clone)]
pub(crate) struct Network {
    endpoint: Endpoint,
    state: Arc<Mutex<State>>,
    died: Arc<Notify>,
}

impl Network {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        Self {
            endpoint: cluster.endpoint(),
            state: Arc::default(),
            died: Arc::default(),
        }
    }

    /// A new connection, and the switch that ends it.
    pub(crate) fn connect(&self) -> (kube::Client, Arc<AtomicBool>) {
        let dead = Arc::new(AtomicBool::new(false));
        let connection = Connection {
            network: self.clone(),
            dead: dead.clone(),
        };
        (kube::Client::new(connection, "default"), dead)
    }

    /// Lets `rule` decide about each call from now on; the first rule with an opinion counts.
    pub(crate) fn rule(&self, rule: impl FnMut(&Call) -> Option<Fault> + Send + 'static) {
        self.state.lock().unwrap().rules.push(Box::new(rule));
    }

    /// Does this to the next `times` calls of this kind.
    pub(crate) fn fault(&self, verb: &'static str, resource: &'static str, mut times: usize, fault: Fault) {
        self.rule(move |call| {
            let hit = times > 0 && call.is(verb, resource);
            times -= usize::from(hit);
            hit.then(|| fault.clone())
        });
    }

    /// No more faults.
    pub(crate) fn heal(&self) {
        self.state.lock().unwrap().rules.clear();
    }

    /// The calls since this was last asked.
    pub(crate) fn take(&self) -> Vec<Call> {
        std::mem::take(&mut self.state.lock().unwrap().calls)
    }

    /// How many such calls there were since the calls were last taken.
    pub(crate) fn count(&self, verb: &str, resource: &str) -> usize {
        let state = self.state.lock().unwrap();
        state.calls.iter().filter(|c| c.is(verb, resource)).count()
    }

    /// Comes when a fault has killed the operator.
    pub(crate) async fn died(&self) {
        self.died.notified().await;
    }

    fn judge(&self, call: Call) -> Option<Fault> {
        let mut state = self.state.lock().unwrap();
        let fault = state.rules.iter_mut().find_map(|rule| rule(&call));
        state.calls.push(call);
        fault
    }
}

struct Connection {
    network: Network,
    dead: Arc<AtomicBool>,
}

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

impl Service<Request<Body>> for Connection {
    type Response = Answer;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let mut endpoint = self.network.endpoint.clone();
        if self.dead.load(Ordering::Relaxed) {
            return Box::pin(pending());
        }
        let fault = self.network.judge(Call::of(&request));
        let network = self.network.clone();
        let dead = self.dead.clone();
        let die = move || {
            dead.store(true, Ordering::Relaxed);
            network.died.notify_one();
        };
        Box::pin(async move {
            match fault {
                None => endpoint
                    .call(request)
                    .await
                    .map(|answer| answer.map(|b| b.boxed_unsync())),
                Some(Fault::Refused(code, reason)) => Ok(refusal(code, reason)),
                Some(Fault::Garbled(code, reason)) => {
                    let _ = endpoint.call(request).await;
                    Ok(refusal(code, reason))
                }
                Some(Fault::Lost) => pending().await,
                Some(Fault::Unanswered) => {
                    let _ = endpoint.call(request).await;
                    pending().await
                }
                Some(Fault::DiesBefore) => {
                    die();
                    pending().await
                }
                Some(Fault::DiesAfter) => {
                    let _ = endpoint.call(request).await;
                    die();
                    pending().await
                }
            }
        })
    }
}

fn refusal(code: u16, reason: &str) -> Answer {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": format!("injected: {reason}"),
    });
    let mut answer = Response::new(Full::new(Bytes::from(status.to_string())).boxed_unsync());
    *answer.status_mut() = http::StatusCode::from_u16(code).unwrap();
    answer
}
