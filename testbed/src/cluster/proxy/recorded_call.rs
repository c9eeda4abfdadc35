//! A call, as the proxy receives it.

use http::{Method, Request};
use serde_json::Value;

/// A call that a program made.
#[derive(Clone, Debug)]
pub struct RecordedCall {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: &'static str,
    /// The plural, such as `pods`; empty for paths like `/version`.
    pub resource: String,
    /// The subresource, such as `status`, or empty.
    pub subresource: String,
    /// The namespace, or empty if there is none.
    pub namespace: String,
    /// The name of the object, even if only the body contains it. Empty for lists.
    pub name: String,
    /// The query string.
    pub query: String,
    /// The body of a request that has one.
    pub body: Option<Value>,
    /// The status code of the response, if the API server sent one.
    pub code: Option<u16>,
    /// True if a fault affected the call.
    pub faulty: bool,
}

impl RecordedCall {
    pub(super) fn of(request: &Request<()>, body: &[u8]) -> Self {
        let query = request.uri().query().unwrap_or_default();
        let parts: Vec<&str> = request.uri().path().trim_matches('/').split('/').collect();
        let (namespace, parts) = match &parts[..] {
            ["api", _, "namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            ["apis", _, _, "namespaces", namespace, rest @ ..] => (*namespace, rest),
            ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => ("", rest),
            _ => ("", &[][..]),
        };
        let part = |n: usize| parts.get(n).copied().unwrap_or_default();
        let body: Option<Value> = serde_json::from_slice(body).ok();
        let in_body = body.as_ref().and_then(|b| b["metadata"]["name"].as_str());
        let name = match (part(1), request.method()) {
            ("", &Method::POST) => in_body.unwrap_or_default(),
            (name, _) => name,
        };
        let watches = query
            .split('&')
            .any(|pair| matches!(pair, "watch=true" | "watch=1"));
        let verb = match *request.method() {
            Method::GET if watches => "watch",
            Method::GET if part(1).is_empty() => "list",
            Method::GET => "get",
            Method::POST => "create",
            Method::PATCH => "patch",
            Method::PUT => "update",
            _ if part(1).is_empty() => "deletecollection",
            _ => "delete",
        };
        Self {
            verb,
            resource: part(0).to_owned(),
            subresource: part(2).to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            query: query.to_owned(),
            body,
            code: None,
            faulty: false,
        }
    }

    /// Returns true if the call is a write.
    pub fn writes(&self) -> bool {
        !matches!(self.verb, "get" | "list" | "watch")
    }

    /// Returns a short text: `create pods NAME 201`, with a star if a fault affected the call.
    pub fn summary(&self) -> String {
        let mut text = format!("{} {}", self.verb, self.resource);
        if !self.subresource.is_empty() {
            text += &format!("/{}", self.subresource);
        }
        if !self.name.is_empty() {
            text += &format!(" {}", self.name);
        }
        text += &self
            .code
            .map_or_else(|| " -".to_owned(), |code| format!(" {code}"));
        text + if self.faulty { " *" } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(method: &str, uri: &str, body: &str) -> String {
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        RecordedCall::of(&request, body.as_bytes()).summary()
    }

    #[test]
    fn paths_are_read() {
        let jobs = "/apis/kubeflow.org/v1/namespaces/ns/mxjobs";
        let all = [
            (
                "POST",
                "/api/v1/namespaces/ns/pods",
                r#"{"metadata":{"name":"a"}}"#,
                "create pods a -",
            ),
            (
                "PATCH",
                &*format!("{jobs}/a/status?x"),
                "{}",
                "patch mxjobs/status a -",
            ),
            (
                "GET",
                "/api/v1/pods?watch=true&timeoutSeconds=9",
                "",
                "watch pods -",
            ),
            (
                "GET",
                "/apis/kubeflow.org/v1/mxjobs?limit=500",
                "",
                "list mxjobs -",
            ),
            ("GET", "/api/v1/namespaces/ns", "", "get namespaces ns -"),
            ("DELETE", "/api/v1/namespaces/ns/pods/a", "{}", "delete pods a -"),
            ("GET", "/version", "", "list  -"),
        ];
        for (method, uri, body, expected) in all {
            assert_eq!(summary(method, uri, body), expected, "{uri}");
        }
    }
}
