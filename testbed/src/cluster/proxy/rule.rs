//! The faults, and the calls that they affect.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

use super::{RecordedCall, Shared};

/// A selection of calls.
#[derive(Clone, Debug)]
pub struct On {
    verb: Option<&'static str>,
    /// A subresource follows after a slash.
    resource: Option<&'static str>,
    writes: bool,
    prefix: String,
    name: Option<String>,
    times: usize,
}

impl On {
    /// Matches all calls.
    pub fn any() -> Self {
        Self {
            verb: None,
            resource: None,
            writes: false,
            prefix: String::new(),
            name: None,
            times: usize::MAX,
        }
    }

    /// Matches all writes.
    pub fn writes() -> Self {
        Self {
            writes: true,
            ..Self::any()
        }
    }

    /// Matches the calls with this verb and resource, such as `patch` and `mxjobs/status`.
    pub fn call(verb: &'static str, resource: &'static str) -> Self {
        Self {
            verb: Some(verb),
            resource: Some(resource),
            ..Self::any()
        }
    }

    /// Matches all calls for a resource.
    pub fn resource(resource: &'static str) -> Self {
        Self {
            resource: Some(resource),
            ..Self::any()
        }
    }

    /// Matches only calls for the object of this name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Matches only calls for objects whose names start with this prefix.
    #[must_use]
    pub fn prefixed(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// Limits the number of matching calls.
    #[must_use]
    pub fn times(mut self, calls: usize) -> Self {
        self.times = calls;
        self
    }

    /// Returns true if this is such a call, regardless of the number of earlier calls.
    pub(super) fn is_meant(&self, call: &RecordedCall) -> bool {
        let resource = |wanted: &str| match wanted.split_once('/') {
            Some((resource, sub)) => call.resource == resource && call.subresource == sub,
            None => call.resource == wanted && call.subresource.is_empty(),
        };
        self.verb.is_none_or(|verb| call.verb == verb)
            && self.resource.is_none_or(resource)
            && (!self.writes || call.writes())
            && call.name.starts_with(&self.prefix)
            && self.name.as_ref().is_none_or(|name| call.name == *name)
    }
}

/// The fault of a call.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The API server does not receive the call, and the response is this reply.
    Refused(Reply),
    /// The API server does not receive the call, and no response comes.
    BlackHole,
    /// The call continues when the fault is lifted.
    Held,
}

/// A response that the proxy makes up.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(super) code: u16,
    pub(super) content_type: &'static str,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: String,
}

impl Reply {
    /// Returns a reply with any content.
    pub fn raw(code: u16, content_type: &'static str, body: impl Into<String>) -> Self {
        Self {
            code,
            content_type,
            headers: Vec::new(),
            body: body.into(),
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// A rule and its counters.
pub(super) struct Rule {
    on: On,
    pub(super) fault: Fault,
    seen: AtomicUsize,
    happened: AtomicUsize,
    lifted: watch::Sender<bool>,
}

impl Rule {
    pub(super) fn new(on: On, fault: Fault) -> Self {
        Self {
            on,
            fault,
            seen: AtomicUsize::new(0),
            happened: AtomicUsize::new(0),
            lifted: watch::Sender::new(false),
        }
    }

    /// Returns true if the rule applies to this call, and counts the call.
    pub(super) fn takes(&self, call: &RecordedCall) -> bool {
        if *self.lifted.borrow() || !self.on.is_meant(call) {
            return false;
        }
        self.seen.fetch_add(1, Ordering::SeqCst) < self.on.times
    }

    pub(super) fn happens(&self, shared: &Shared) {
        self.happened.fetch_add(1, Ordering::SeqCst);
        shared.changed.send_replace(());
    }

    pub(super) fn lift(&self) {
        self.lifted.send_replace(true);
    }

    pub(super) async fn lifted(&self) {
        // The sender lives as long as the rule.
        let _ = self.lifted.subscribe().wait_for(|lifted| *lifted).await;
    }
}

/// A fault that a test requested.
pub struct Planned {
    rule: Arc<Rule>,
    shared: Arc<Shared>,
}

impl Planned {
    pub(super) fn new(rule: Arc<Rule>, shared: Arc<Shared>) -> Self {
        Self { rule, shared }
    }

    /// Returns the number of times the fault has occurred.
    pub fn count(&self) -> usize {
        self.rule.happened.load(Ordering::SeqCst)
    }

    /// Waits until the fault has occurred this many times.
    pub async fn happened(&self, times: usize) {
        let what = format!("{times} times {self:?}");
        let look = |_: &super::State| (self.count() >= times).then_some(());
        self.shared.until(&what, look).await;
    }

    /// Lifts the fault. Calls that it holds continue, and calls in a black hole lose their connection.
    pub fn lift(&self) {
        self.rule.lift();
    }
}

impl fmt::Debug for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} on {:?} ({} so far)",
            self.rule.fault,
            self.rule.on,
            self.count()
        )
    }
}
