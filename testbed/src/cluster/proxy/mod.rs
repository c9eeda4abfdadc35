//! A proxy between a program and the API server that injects faults of networks and servers.
//!
//! The program sends HTTP to the proxy, and the proxy sends HTTPS to the API server, with the program's own
//! credentials. Rules define the faults. [`Proxy::fault`] takes the matching calls ([`On`]) and their fault
//! ([`Fault`]), and returns a [`Planned`] that counts how often the fault occurred. A test should check that count,
//! because without a matching call it tests nothing.

mod recorded_call;
mod rule;
mod serve;
mod watches;

pub use recorded_call::RecordedCall;
pub use rule::{Fault, On, Planned, Reply};
pub use watches::Frozen;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kube::Client;
use parking_lot::Mutex;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::control_plane::ControlPlane;
use super::users::{config, read};
use super::{WAIT_TIMEOUT, tail};
use rule::Rule;
use watches::Stream;

/// A proxy. Dropping it closes all its connections.
pub struct Proxy {
    shared: Arc<Shared>,
    kubeconfig: PathBuf,
    server: JoinHandle<()>,
}

struct Shared {
    upstream: Client,
    state: Mutex<State>,
    /// Notified when a call arrives or gets a response, and when a fault occurs.
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    calls: Vec<RecordedCall>,
    rules: Vec<Arc<Rule>>,
    streams: Vec<Arc<Stream>>,
}

impl Shared {
    /// Waits for a state of the proxy.
    async fn until<T>(&self, what: &str, mut look: impl FnMut(&State) -> Option<T>) -> T {
        let mut changes = self.changed.subscribe();
        let awaited = async {
            loop {
                changes.mark_unchanged();
                if let Some(found) = look(&self.state.lock()) {
                    return found;
                }
                let _ = changes.changed().await;
            }
        };
        match timeout(WAIT_TIMEOUT, awaited).await {
            Ok(found) => found,
            Err(_) => panic!(
                "the proxy: awaited {what} for {WAIT_TIMEOUT:?}; its last calls:\n{}",
                self.last_calls()
            ),
        }
    }

    fn last_calls(&self) -> String {
        let calls: Vec<_> = self
            .state
            .lock()
            .calls
            .iter()
            .map(RecordedCall::summary)
            .collect();
        tail(&calls.join("\n"))
    }
}

impl ControlPlane {
    /// Starts a proxy for the cluster of this kubeconfig.
    pub async fn proxy(&self, kubeconfig: &Path) -> Proxy {
        let mut upstream = config(kubeconfig).await.expect("a kubeconfig");
        // The program sends its own credentials, and has its own timeouts and retries.
        upstream.auth_info = kube::config::AuthInfo::default();
        upstream.default_retry = false;
        upstream.read_timeout = None;
        upstream.write_timeout = None;
        let shared = Arc::new(Shared {
            upstream: Client::try_from(upstream).expect("a client"),
            state: Mutex::default(),
            changed: watch::Sender::new(()),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let mut through = read(kubeconfig);
        for cluster in through["clusters"].as_array_mut().into_iter().flatten() {
            cluster["cluster"] = json!({"server": format!("http://{address}")});
        }
        let kubeconfig = self.write_kubeconfig(&through);
        let server = tokio::spawn(serve::serve(listener, Arc::clone(&shared)));
        Proxy {
            shared,
            kubeconfig,
            server,
        }
    }

    /// Returns the path of the same kubeconfig with the token in a file, as for service accounts in pods.
    pub fn kubeconfig_with_token_file(&self, kubeconfig: &Path, token: &Path) -> PathBuf {
        let mut changed = read(kubeconfig);
        for user in changed["users"].as_array_mut().into_iter().flatten() {
            user["user"] = json!({"tokenFile": token});
        }
        self.write_kubeconfig(&changed)
    }

    /// Returns the token in a kubeconfig.
    pub fn token_of(&self, kubeconfig: &Path) -> String {
        let token = read(kubeconfig)["users"][0]["user"]["token"].clone();
        token.as_str().expect("it has a token").to_owned()
    }
}

impl Proxy {
    /// Returns the path of the kubeconfig for programs that use the proxy.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Injects a fault into these calls from now on. If several rules match a call, the first rule applies, and the
    /// later rules do not count the call.
    pub fn fault(&self, on: On, fault: Fault) -> Planned {
        let rule = Arc::new(Rule::new(on, fault));
        self.shared.state.lock().rules.push(Arc::clone(&rule));
        Planned::new(rule, Arc::clone(&self.shared))
    }

    /// Removes all rules.
    pub fn heal(&self) {
        let rules = std::mem::take(&mut self.shared.state.lock().rules);
        rules.iter().for_each(|rule| rule.lift());
    }

    /// Returns all calls so far, in the order of their arrival.
    pub fn calls(&self) -> Vec<RecordedCall> {
        self.shared.state.lock().calls.clone()
    }

    /// Returns the number of matching calls so far.
    pub fn count(&self, on: &On) -> usize {
        self.shared
            .state
            .lock()
            .calls
            .iter()
            .filter(|call| on.is_meant(call))
            .count()
    }

    /// Waits until this many matching calls have succeeded, and returns them.
    pub async fn wait_for(&self, on: &On, count: usize) -> Vec<RecordedCall> {
        let done = |state: &State| {
            let good = |call: &&RecordedCall| on.is_meant(call) && call.code.is_some_and(|c| c < 300);
            let calls: Vec<RecordedCall> = state.calls.iter().filter(good).cloned().collect();
            (calls.len() >= count).then_some(calls)
        };
        self.shared.until(&format!("{count} × {on:?}"), done).await
    }

    /// Waits for a call that `look` accepts, with or without a response.
    pub async fn until_call(&self, what: &str, look: impl Fn(&RecordedCall) -> bool) -> RecordedCall {
        let found = |state: &State| state.calls.iter().find(|call| look(call)).cloned();
        self.shared.until(what, found).await
    }

    /// Ends all watches of a resource: in order, as a server does, or by a lost connection. Returns the number of
    /// watches that were open.
    pub fn cut_watches(&self, resource: &str, in_order: bool) -> usize {
        let streams = self.streams(resource);
        streams.iter().filter(|stream| stream.cut(in_order)).count()
    }

    /// Holds back the events of the open watches of a resource. New watches are not affected.
    pub fn freeze_watches(&self, resource: &str) -> Frozen {
        Frozen::new(self.streams(resource))
    }

    /// Waits until the program watches a resource, and this many watches of it have started so far.
    pub async fn watched(&self, resource: &str, begun: usize) {
        let open = |state: &State| {
            let all = state.streams.iter().filter(|s| s.resource == resource);
            (all.clone().count() >= begun && all.clone().any(|s| s.is_open())).then_some(())
        };
        self.shared
            .until(&format!("watch {begun} of {resource}"), open)
            .await;
    }

    /// Returns the number of watches of a resource that have started so far.
    pub fn watches_begun(&self, resource: &str) -> usize {
        self.shared
            .state
            .lock()
            .streams
            .iter()
            .filter(|s| s.resource == resource)
            .count()
    }

    fn streams(&self, resource: &str) -> Vec<Arc<Stream>> {
        let state = self.shared.state.lock();
        let wanted = |s: &&Arc<Stream>| (resource.is_empty() || s.resource == resource) && s.is_open();
        state.streams.iter().filter(wanted).cloned().collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}
