//! The calls of an operator.

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;

/// What a call fails with if no answer comes.
pub(crate) type CallError = Box<dyn std::error::Error + Send + Sync>;

/// The body of an answer.
pub(crate) type AnswerBody = UnsyncBoxBody<Bytes, CallError>;

/// The answer to a call.
pub(crate) type Answer = Response<AnswerBody>;

/// One call of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Which operator, in the order of their starts.
    pub operator: usize,
    /// `list`, `watch`, `get`, `create`, `patch`, `delete`.
    pub verb: &'static str,
    /// `pods`, `mxjobs/status`, …
    pub resource: String,
    /// The object, if the path names one.
    pub name: String,
    /// The query.
    pub query: String,
}

impl Call {
    /// Whether it has this verb and resource; an empty resource stands for all.
    pub fn is(&self, verb: &str, resource: &str) -> bool {
        self.verb == verb && (resource.is_empty() || self.resource == resource)
    }

    /// Whether it changes something.
    pub fn writes(&self) -> bool {
        !matches!(self.verb, "list" | "watch" | "get")
    }

    /// Verb and resource, such as `create pods`.
    pub fn verb_and_resource(&self) -> String {
        format!("{} {}", self.verb, self.resource)
    }

    /// The call that a request makes.
    pub(crate) fn from_request<B>(operator: usize, request: &Request<B>) -> Self {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let parts: Vec<&str> = request.uri().path().trim_matches('/').split('/').collect();
        let skipped = if parts[0] == "api" { 2 } else { 3 };
        let parts = parts.get(skipped..).unwrap_or_default();
        let parts = match parts {
            ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
            all => all,
        };
        let part = |index: usize| parts.get(index).copied().unwrap_or_default().to_owned();
        let (mut resource, name) = (part(0), part(1));
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
            operator,
            verb,
            resource,
            name,
            query,
        }
    }
}

/// The operator's call that the cluster is carrying out.
#[derive(Clone, Debug)]
pub struct CurrentCall {
    /// The call.
    pub call: Call,
    /// When it was sent, in milliseconds since the beginning.
    pub sent: u64,
    /// The UID that a delete or a patch names, so that it concerns no other object.
    pub uid: Option<String>,
}
