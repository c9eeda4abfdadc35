//! The API server's own record of what it was asked.

use std::fs;

use serde_json::{Value, json};

use super::access::{MANAGER, NODE};
use super::control_plane::ControlPlane;

/// Whose requests are recorded.
#[derive(Clone, Debug)]
pub enum Audit {
    /// Those of these users, such as `system:serviceaccount:NAMESPACE:NAME`.
    Of(Vec<String>),
    /// Those of all but the control plane itself and [`Kubelet`](super::Kubelet).
    All,
    /// The same without bodies, which cost an API server that is measured.
    Heads,
}

impl Audit {
    /// The policy for the API server.
    pub(super) fn policy(&self) -> Value {
        let none = json!({"level": "None"});
        let of_all = |level: &str| {
            vec![
                json!({"level": "None", "users": [MANAGER, NODE, "system:apiserver"]}),
                json!({ "level": level }),
            ]
        };
        let rules = match self {
            // Without users a rule would be for all.
            Self::Of(users) if users.is_empty() => vec![none],
            Self::Of(users) => vec![json!({"level": "Request", "users": users}), none],
            Self::All => of_all("Request"),
            Self::Heads => of_all("Metadata"),
        };
        json!({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": rules,
        })
    }
}

/// A request that the API server answered. Of a watch that is once when it began and once when it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Who asked.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// The plural, such as `pods`; empty for paths like `/version`.
    pub resource: String,
    /// Such as `status`, or empty.
    pub subresource: String,
    /// Empty for what has none.
    pub namespace: String,
    /// Empty for lists, and where the request leaves it to its object.
    pub name: String,
    /// The HTTP status.
    pub code: u16,
    /// `ResponseComplete`, `ResponseStarted` for watches, or `Panic`.
    pub stage: String,
    /// The path and the query.
    pub uri: String,
    /// What the client calls itself.
    pub user_agent: String,
    /// The body of a request that has one.
    pub body: Option<Value>,
}

impl Call {
    fn parse(line: &str) -> Self {
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

    /// In few words: `create pods/status NAME 201`. What is empty is left out.
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

impl ControlPlane {
    /// All recorded calls so far, in order. A call is here when its answer has come.
    pub fn audit(&self) -> Vec<Call> {
        let own = self
            .own
            .as_ref()
            .expect("only a control plane of our own has an audit log");
        assert!(own.options.audit.is_some(), "Options::audit was not set");
        let log = fs::read_to_string(self.directory.path().join("audit.log")).unwrap_or_default();
        // The last line may be in the making.
        let whole = log.rfind('\n').map_or("", |end| &log[..end]);
        whole.lines().map(Call::parse).collect()
    }
}
