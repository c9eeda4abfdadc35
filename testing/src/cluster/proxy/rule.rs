//! What goes wrong, and with which calls.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::{Asked, Shared, status};

/// Which calls are meant.
#[derive(Clone, Debug)]
pub struct On {
    verb: Option<&'static str>,
    /// With a sub-resource behind a slash.
    resource: Option<&'static str>,
    writes: bool,
    except: &'static str,
    prefix: String,
    name: Option<String>,
    skip: usize,
    times: usize,
}

impl On {
    /// All calls.
    pub fn any() -> Self {
        Self {
            verb: None,
            resource: None,
            writes: false,
            except: "",
            prefix: String::new(),
            name: None,
            skip: 0,
            times: usize::MAX,
        }
    }

    /// All that ask for a change.
    pub fn writes() -> Self {
        Self {
            writes: true,
            ..Self::any()
        }
    }

    /// Those of a verb for a resource, such as `patch` and `mxjobs/status`.
    pub fn call(verb: &'static str, resource: &'static str) -> Self {
        Self {
            verb: Some(verb),
            resource: Some(resource),
            ..Self::any()
        }
    }

    /// All for a resource.
    pub fn resource(resource: &'static str) -> Self {
        Self {
            resource: Some(resource),
            ..Self::any()
        }
    }

    /// Only those for the object of this name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Only those for objects whose names begin so.
    #[must_use]
    pub fn prefixed(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// Not those for this resource.
    #[must_use]
    pub fn except(mut self, resource: &'static str) -> Self {
        self.except = resource;
        self
    }

    /// Not the first so many.
    #[must_use]
    pub fn skip(mut self, calls: usize) -> Self {
        self.skip = calls;
        self
    }

    /// At most so many.
    #[must_use]
    pub fn times(mut self, calls: usize) -> Self {
        self.times = calls;
        self
    }

    /// Whether this is such a call, however many there were.
    pub(super) fn is_meant(&self, call: &Asked) -> bool {
        let resource = |wanted: &str| match wanted.split_once('/') {
            Some((resource, sub)) => call.resource == resource && call.subresource == sub,
            None => call.resource == wanted && call.subresource.is_empty(),
        };
        self.verb.is_none_or(|verb| call.verb == verb)
            && self.resource.is_none_or(resource)
            && (self.except.is_empty() || call.resource != self.except)
            && (!self.writes || call.writes())
            && call.name.starts_with(&self.prefix)
            && self.name.as_ref().is_none_or(|name| call.name == *name)
    }
}

/// What happens to a call.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The API server does not hear of it, and this is the answer.
    Refused(Reply),
    /// It takes effect, and then this is the answer.
    Misreported(Reply),
    /// The connection is lost before the API server hears of it.
    Lost,
    /// It takes effect, and the connection is lost before the answer.
    AnswerLost,
    /// The API server does not hear of it, and no answer ever comes.
    BlackHole,
    /// It takes effect, and no answer ever comes.
    Unanswered,
    /// It goes on when the fault is lifted.
    Held,
    /// It goes on after a while.
    Late(Duration),
    /// It takes effect, and the connection is lost in the middle of the answer.
    BrokenOff,
    /// All is well but that the answer has one more header.
    Header(&'static str, String),
    /// The watch ends after so many events, in order.
    EndsAfter(usize),
}

/// An answer that is not the API server's.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(super) code: u16,
    pub(super) content_type: &'static str,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: String,
}

impl Reply {
    /// A refusal in the API server's form.
    pub fn status(code: u16, reason: &str) -> Self {
        let message = format!("the proxy says {code}");
        Self::raw(
            code,
            "application/json",
            status(code, reason, &message).to_string(),
        )
    }

    /// Anything.
    pub fn raw(code: u16, content_type: &'static str, body: impl Into<String>) -> Self {
        Self {
            code,
            content_type,
            headers: Vec::new(),
            body: body.into(),
        }
    }

    /// A watch that tells this, and ends.
    pub fn events(events: &[Value]) -> Self {
        let lines: Vec<_> = events.iter().map(|event| format!("{event}\n")).collect();
        Self::raw(200, "application/json", lines.concat())
    }

    /// A watch that says that its version is too old, and ends.
    pub fn expired() -> Self {
        let object = status(410, "Expired", "too old resource version: 1 (2)");
        Self::events(&[json!({"type": "ERROR", "object": object})])
    }

    /// With one more header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// A rule, and what became of it.
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

    /// Whether it holds for this call, which is counted.
    pub(super) fn takes(&self, call: &Asked) -> bool {
        if *self.lifted.borrow() || !self.on.is_meant(call) {
            return false;
        }
        let number = self.seen.fetch_add(1, Ordering::SeqCst);
        number >= self.on.skip && number - self.on.skip < self.on.times
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

/// A fault that was asked for.
pub struct Planned {
    rule: Arc<Rule>,
    shared: Arc<Shared>,
}

impl Planned {
    pub(super) fn new(rule: Arc<Rule>, shared: Arc<Shared>) -> Self {
        Self { rule, shared }
    }

    /// How often it has happened.
    pub fn count(&self) -> usize {
        self.rule.happened.load(Ordering::SeqCst)
    }

    /// Awaits that it has happened so often.
    pub async fn happened(&self, times: usize) {
        let what = format!("{times} times {self:?}");
        let look = |_: &super::State| (self.count() >= times).then_some(());
        self.shared.until(&what, look).await;
    }

    /// It happens no more. What it holds up goes on; what hangs in a black hole loses its connection.
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
