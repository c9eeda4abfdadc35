//! A proxy between a program and the API server that does what networks and servers do when they are
//! not well.
//!
//! The program speaks HTTP to the proxy, the proxy HTTPS to the API server, with the program's own
//! credentials. What is to go wrong is said by rules: [`Proxy::fault`] takes which calls are meant
//! ([`On`]) and what happens to them ([`Fault`]), and gives back a [`Planned`] that counts how often it
//! did happen. A test that does not ask for that count may have tested nothing.

mod asked;
mod rule;
mod serve;
mod watches;

pub use asked::Asked;
pub use rule::{Fault, On, Planned, Reply};
pub use watches::Frozen;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::access::{config, read};
use super::control_plane::ControlPlane;
use super::{PATIENCE, tail};
use rule::Rule;
use watches::Stream;

/// A proxy. When it is dropped, all its connections are.
pub struct Proxy {
    shared: Arc<Shared>,
    kubeconfig: PathBuf,
    server: JoinHandle<()>,
}

struct Shared {
    upstream: Client,
    state: Mutex<State>,
    /// Sent to whenever a call is entered or answered, or a fault happens.
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    calls: Vec<Asked>,
    rules: Vec<Arc<Rule>>,
    streams: Vec<Arc<Stream>>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Awaits something of the proxy.
    async fn until<T>(&self, what: &str, mut look: impl FnMut(&State) -> Option<T>) -> T {
        let mut changes = self.changed.subscribe();
        let awaited = async {
            loop {
                changes.mark_unchanged();
                if let Some(found) = look(&self.lock()) {
                    return found;
                }
                let _ = changes.changed().await;
            }
        };
        match timeout(PATIENCE, awaited).await {
            Ok(found) => found,
            Err(_) => panic!(
                "the proxy: awaited {what} for {PATIENCE:?}; its last calls:\n{}",
                self.last_calls()
            ),
        }
    }

    fn last_calls(&self) -> String {
        let calls: Vec<_> = self.lock().calls.iter().map(Asked::summary).collect();
        tail(&calls.join("\n"))
    }
}

impl ControlPlane {
    /// A proxy for who uses this kubeconfig.
    pub async fn proxy(&self, kubeconfig: &Path) -> Proxy {
        let mut upstream = config(kubeconfig).await.expect("a kubeconfig");
        // Credentials are the program's; so are time-outs and retries.
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

    /// The same kubeconfig with the token in a file, as service accounts have it in pods.
    pub fn kubeconfig_with_token_file(&self, kubeconfig: &Path, token: &Path) -> PathBuf {
        let mut changed = read(kubeconfig);
        for user in changed["users"].as_array_mut().into_iter().flatten() {
            user["user"] = json!({"tokenFile": token});
        }
        self.write_kubeconfig(&changed)
    }

    /// The token in a kubeconfig.
    pub fn token_of(&self, kubeconfig: &Path) -> String {
        let token = read(kubeconfig)["users"][0]["user"]["token"].clone();
        token.as_str().expect("it has a token").to_owned()
    }
}

impl Proxy {
    /// The kubeconfig by which programs use it.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Has this happen to these calls from now on. Of several rules for a call the first
    /// holds, and those behind it do not count it.
    pub fn fault(&self, on: On, fault: Fault) -> Planned {
        let rule = Arc::new(Rule::new(on, fault));
        self.shared.lock().rules.push(Arc::clone(&rule));
        Planned::new(rule, Arc::clone(&self.shared))
    }

    /// Lifts all rules.
    pub fn heal(&self) {
        let rules = std::mem::take(&mut self.shared.lock().rules);
        rules.iter().for_each(|rule| rule.lift());
    }

    /// Every call so far, in the order in which they came.
    pub fn calls(&self) -> Vec<Asked> {
        self.shared.lock().calls.clone()
    }

    /// How many calls of this kind have come so far.
    pub fn count(&self, on: &On) -> usize {
        self.shared
            .lock()
            .calls
            .iter()
            .filter(|call| on.is_meant(call))
            .count()
    }

    /// Awaits that this many calls of a kind have been answered with a success, and returns these.
    pub async fn wait_for(&self, on: &On, count: usize) -> Vec<Asked> {
        let done = |state: &State| {
            let good = |call: &&Asked| on.is_meant(call) && call.code.is_some_and(|c| c < 300);
            let calls: Vec<Asked> = state.calls.iter().filter(good).cloned().collect();
            (calls.len() >= count).then_some(calls)
        };
        self.shared.until(&format!("{count} × {on:?}"), done).await
    }

    /// Awaits a call of some kind, answered or not.
    pub async fn until_call(&self, what: &str, look: impl Fn(&Asked) -> bool) -> Asked {
        let found = |state: &State| state.calls.iter().find(|call| look(call)).cloned();
        self.shared.until(what, found).await
    }

    /// Ends all watches of a resource: in order, as a server does, or by losing the connection. Returns how
    /// many.
    pub fn cut_watches(&self, resource: &str, in_order: bool) -> usize {
        let streams = self.streams(resource);
        streams.iter().filter(|stream| stream.cut(in_order)).count()
    }

    /// Holds back what the watches of a resource that are open now would tell; new ones are free.
    pub fn freeze_watches(&self, resource: &str) -> Frozen {
        Frozen::new(self.streams(resource))
    }

    /// Awaits that the program watches a resource, and that so many watches of it have begun so far.
    pub async fn watched(&self, resource: &str, begun: usize) {
        let open = |state: &State| {
            let all = state.streams.iter().filter(|s| s.resource == resource);
            (all.clone().count() >= begun && all.clone().any(|s| s.is_open())).then_some(())
        };
        self.shared
            .until(&format!("watch {begun} of {resource}"), open)
            .await;
    }

    /// How many watches of a resource have begun so far.
    pub fn watches_begun(&self, resource: &str) -> usize {
        self.shared
            .lock()
            .streams
            .iter()
            .filter(|s| s.resource == resource)
            .count()
    }

    fn streams(&self, resource: &str) -> Vec<Arc<Stream>> {
        let state = self.shared.lock();
        let wanted = |s: &&Arc<Stream>| (resource.is_empty() || s.resource == resource) && s.is_open();
        state.streams.iter().filter(wanted).cloned().collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// A `Status` as the API server writes it.
fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {},
        "status": "Failure", "message": message, "reason": reason, "code": code,
    })
}
