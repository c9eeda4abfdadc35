//! The API server's audit log.

use serde_json::{Value, json};

use super::users::{MANAGER, NODE};

/// The requests to record.
#[derive(Clone, Debug)]
pub enum Audit {
    /// All requests except those of the control plane itself and of [`Kubelet`](super::Kubelet).
    All,
    /// The same requests without bodies, which would slow down an API server in a benchmark.
    Heads,
}

impl Audit {
    /// Returns the audit policy for the API server.
    pub(super) fn policy(&self) -> Value {
        let level = match self {
            Self::All => "Request",
            Self::Heads => "Metadata",
        };
        json!({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": [{"level": "None", "users": [MANAGER, NODE, "system:apiserver"]}, {"level": level}],
        })
    }
}

/// A request with a response of the API server. A watch is recorded once at its start and once at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The user of the request.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// The plural, such as `pods`; empty for paths like `/version`.
    pub resource: String,
    /// The subresource, such as `status`, or empty.
    pub subresource: String,
    /// The namespace, or empty if there is none.
    pub namespace: String,
    /// The name of the object. Empty for lists, and for requests in which only the object contains the name.
    pub name: String,
    /// The HTTP status.
    pub code: u16,
    /// `ResponseComplete`, `ResponseStarted` for watches, or `Panic`.
    pub stage: String,
    /// The path and the query.
    pub uri: String,
    /// The user agent of the client.
    pub user_agent: String,
    /// The body of a request that has one.
    pub body: Option<Value>,
}

impl Call {
    pub(super) fn parse(line: &str) -> Self {
        let event: Value = serde_json::from_str(line).expect("the audit log is JSON, line by line");
        let text = |pointer| {
            event
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let code = event.pointer("/responseStatus/code").and_then(Value::as_u64);
        Self {
            user: text("/user/username"),
            verb: text("/verb"),
            resource: text("/objectRef/resource"),
            subresource: text("/objectRef/subresource"),
            namespace: text("/objectRef/namespace"),
            name: text("/objectRef/name"),
            code: code.and_then(|code| code.try_into().ok()).unwrap_or_default(),
            stage: text("/stage"),
            uri: text("/requestURI"),
            user_agent: text("/userAgent"),
            body: event.get("requestObject").cloned(),
        }
    }

    /// Returns a short text: `create pods/status NAME 201`. Empty parts are omitted.
    pub fn summary(&self) -> String {
        let what = match (&*self.resource, &*self.subresource) {
            ("", _) => self.uri.clone(),
            (resource, "") => resource.to_owned(),
            (resource, subresource) => format!("{resource}/{subresource}"),
        };
        let name = if self.name.is_empty() {
            String::new()
        } else {
            format!(" {}", self.name)
        };
        format!("{} {what}{name} {}", self.verb, self.code)
    }
}
