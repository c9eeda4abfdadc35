//! A fence that stops writes of a process that is no longer the leader.
//!
//! A process that was suspended, or whose timers are late, believes for a moment that it still leads. Therefore a
//! write passes only while the lease that this process renewed last is certainly its own. It observes the
//! renewals, and measures the lease from the time before each renewal was sent.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, StatusCode, Uri};
use parking_lot::Mutex;
use tower::BoxError;

use super::around::Observer;

/// The fence, with its view of the lease.
#[derive(Clone, Debug)]
pub(super) struct Fence(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The end of the lease's path.
    suffix: String,
    /// The end of the path of the request that creates it.
    collection: String,
    /// The time for which a renewal is valid.
    duration: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The time of the last renewal by this process.
    renewed: Option<Instant>,
    /// True if the server has responded to a request about the lease.
    asked: bool,
}

/// An attempt to write after the lease was lost.
#[derive(Debug, thiserror::Error)]
#[error("this process is no longer the leader: it did not renew its lease within {} s", .0.as_secs_f64())]
struct NotLeading(Duration);

impl Fence {
    /// Creates a fence for the lease `name` in `namespace`. A renewal is valid for `duration`.
    pub(super) fn new(namespace: &str, name: &str, duration: Duration) -> Self {
        let collection = format!("/namespaces/{namespace}/leases");
        Self(Arc::new(Shared {
            suffix: format!("{collection}/{name}"),
            collection,
            duration,
            state: Mutex::default(),
        }))
    }

    /// Returns true if the server accepts requests about the lease, so that this process can lead or stand by.
    pub(super) fn is_standing_by(&self) -> bool {
        self.0.state.lock().asked
    }

    /// Blocks writes until the lease is acquired again.
    pub(super) fn close(&self) {
        self.0.state.lock().renewed = None;
    }

    fn is_about_lease(&self, path: &str) -> bool {
        path.ends_with(&self.0.suffix) || path.ends_with(&self.0.collection)
    }

    fn lets(&self, method: &Method, path: &str) -> Result<(), NotLeading> {
        if method == Method::GET || self.is_about_lease(path) {
            return Ok(());
        }
        let renewed = self.0.state.lock().renewed;
        match renewed.is_some_and(|at| at.elapsed() < self.0.duration) {
            true => Ok(()),
            false => Err(NotLeading(self.0.duration)),
        }
    }

    fn saw(&self, method: &Method, path: &str, sent: Instant, status: StatusCode) {
        if !self.is_about_lease(path) {
            return;
        }
        let mut state = self.0.state.lock();
        // Before the first election the lease does not exist.
        state.asked |= status.is_success() || status == StatusCode::NOT_FOUND;
        if method != Method::GET && status.is_success() {
            state.renewed = Some(sent);
        }
    }
}

impl Observer for Fence {
    type Request = (Method, String);

    fn request(&self, method: &Method, uri: &Uri) -> Result<Self::Request, BoxError> {
        self.lets(method, uri.path())?;
        Ok((method.clone(), uri.path().to_owned()))
    }

    fn response(&self, (method, path): Self::Request, sent: Instant, code: Option<StatusCode>) {
        if let Some(code) = code {
            self.saw(&method, &path, sent, code);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l";
    const PODS: &str = "/api/v1/namespaces/ns/pods";

    #[test]
    fn writes_need_a_recently_renewed_lease() {
        let fence = Fence::new("ns", "l", Duration::from_secs(10));
        assert!(fence.lets(&Method::GET, PODS).is_ok(), "reading harms nobody");
        assert!(
            fence.lets(&Method::PUT, LEASE).is_ok(),
            "how else could it be had"
        );
        assert!(fence.lets(&Method::POST, PODS).is_err());
        let now = Instant::now();
        fence.saw(&Method::GET, LEASE, now, StatusCode::OK);
        assert!(fence.is_standing_by());
        assert!(fence.lets(&Method::POST, PODS).is_err(), "asking is not having");
        fence.saw(&Method::PUT, LEASE, now, StatusCode::CONFLICT);
        assert!(fence.lets(&Method::POST, PODS).is_err(), "a conflict");
        fence.saw(&Method::PUT, LEASE, now, StatusCode::OK);
        assert!(fence.lets(&Method::POST, PODS).is_ok());
        fence.close();
        assert!(fence.lets(&Method::POST, PODS).is_err(), "given back");
        fence.saw(&Method::PUT, LEASE, now - Duration::from_secs(10), StatusCode::OK);
        assert!(
            fence.lets(&Method::POST, PODS).is_err(),
            "it took so long to renew"
        );
    }
}
