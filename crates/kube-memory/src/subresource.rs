//! Sub-resources that the embedding program serves, such as `pods/log`.

use std::{collections::BTreeMap, convert::Infallible, fmt, future::Future, sync::Arc};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use serde_json::json;

use crate::store::object::Object;

/// The response to a request for a [`Subresource`].
pub type SubresourceResponse = Response<UnsyncBoxBody<Bytes, Infallible>>;

type Handler = dyn Fn(SubresourceRequest) -> BoxFuture<'static, SubresourceResponse> + Send + Sync;

/// A request for a sub-resource of an existing object.
#[derive(Debug)]
#[non_exhaustive]
pub struct SubresourceRequest {
    /// The method, path, query, headers and extensions of the request.
    pub parts: Parts,
    /// The body.
    pub body: Bytes,
    /// The object.
    pub object: Arc<Object>,
}

/// A sub-resource that the embedding program serves: see
/// [`Cluster::serve_subresource`](crate::Cluster::serve_subresource).
#[derive(Clone)]
pub struct Subresource {
    pub(crate) resource: String,
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) verbs: Vec<String>,
    handler: Arc<Handler>,
}

impl Subresource {
    /// Describes the sub-resource `name` of a resource, for example `log` of `pods`. `kind` and `verbs` are for
    /// discovery. `handler` is called with each request for an existing object, outside of the cluster's lock.
    pub fn new<F>(
        resource: &str,
        name: &str,
        kind: &str,
        verbs: &[&str],
        handler: impl Fn(SubresourceRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = SubresourceResponse> + Send + 'static,
    {
        Self {
            resource: resource.to_owned(),
            name: name.to_owned(),
            kind: kind.to_owned(),
            verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
            handler: Arc::new(move |request| Box::pin(handler(request))),
        }
    }

    pub(crate) fn call(
        &self,
        parts: Parts,
        body: Bytes,
        object: Arc<Object>,
    ) -> impl Future<Output = SubresourceResponse> + Send + use<> {
        (self.handler)(SubresourceRequest { parts, body, object })
    }
}

impl fmt::Debug for Subresource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subresource")
            .field("resource", &self.resource)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The sub-resources that the embedding program serves, by resource and name.
pub(crate) type Subresources = BTreeMap<(String, String), Subresource>;

/// Returns a failure as an API server sends it: a `Status` with this code, reason and message.
#[must_use]
pub fn failure_response(code: u16, reason: &str, message: &str) -> SubresourceResponse {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    let mut response = Response::new(Full::from(status.to_string()).boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
