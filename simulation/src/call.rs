//! API calls of an operator.

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;

/// The error of a call that gets no response.
pub(crate) type CallError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a response.
pub(crate) type ResponseBody = UnsyncBoxBody<Bytes, CallError>;

/// The response to a call.
pub(crate) type ApiResponse = Response<ResponseBody>;

/// An API call of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The number of the operator, in the order of their starts.
    pub operator: usize,
    /// `list`, `watch`, `get`, `create`, `patch`, `delete`, and `probe` of a server that seems to be away.
    pub verb: &'static str,
    /// `pods`, `mxjobs/status`, …
    pub resource: String,
    /// The name of the object, or empty if the path names none.
    pub name: String,
    /// The query string.
    pub query: String,
}

impl Call {
    /// Returns true if the call has this verb and resource. An empty resource matches every resource.
    pub fn is(&self, verb: &str, resource: &str) -> bool {
        self.verb == verb && (resource.is_empty() || self.resource == resource)
    }

    /// Returns true if the call is a write.
    pub fn writes(&self) -> bool {
        !matches!(self.verb, "list" | "watch" | "get" | "probe")
    }

    /// Returns the verb and resource, such as `create pods`.
    pub fn verb_and_resource(&self) -> String {
        format!("{} {}", self.verb, self.resource)
    }

    /// Returns the call that a request represents.
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
            Method::GET if request.uri().path() == "/version" => "probe",
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

/// The operator call that the cluster is processing.
#[derive(Clone, Debug)]
pub struct CurrentCall {
    /// The call.
    pub call: Call,
    /// The time it was sent, in milliseconds since the start.
    pub sent: u64,
    /// The UID precondition of a delete or a patch, which limits the call to that object.
    pub uid: Option<String>,
}
