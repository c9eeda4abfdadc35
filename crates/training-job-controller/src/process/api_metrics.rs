//! Counts the requests to the API server, and measures their latencies.

use std::time::Instant;

use http::{Method, StatusCode, Uri};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tower::BoxError;

use super::around::Observer;

/// Buckets for the latency of a request, in seconds.
const LATENCY_BUCKETS: [f64; 10] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// The metrics. Clones share their values.
#[derive(Clone, Debug)]
pub(super) struct ApiMetrics {
    requests: Family<RequestLabels, Counter>,
    latencies: Family<VerbLabel, Histogram>,
    conflicts: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    verb: &'static str,
    resource: String,
    code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerbLabel {
    verb: &'static str,
}

impl Default for ApiMetrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            latencies: Family::new_with_constructor(|| Histogram::new(LATENCY_BUCKETS)),
            conflicts: Counter::default(),
        }
    }
}

impl ApiMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "api_requests", // training_operator_api_requests_total
            "Number of requests to the API server; the code is that of HTTP, or error without a response",
            self.requests.clone(),
        );
        registry.register(
            "api_request_seconds", // training_operator_api_request_seconds
            "Time from a request to the API server to the head of its response, in seconds",
            self.latencies.clone(),
        );
        registry.register(
            "api_conflicts", // training_operator_api_conflicts_total
            "Number of writes that the API server rejected with code 409",
            self.conflicts.clone(),
        );
    }

    /// Counts a request with the code of its response, if there is one.
    pub(super) fn record(&self, verb: &'static str, resource: &str, code: Option<StatusCode>, seconds: f64) {
        let labels = RequestLabels {
            verb,
            resource: resource.to_owned(),
            code: code.map_or_else(|| "error".to_owned(), |code| code.as_str().to_owned()),
        };
        self.requests.get_or_create(&labels).inc();
        self.latencies.get_or_create(&VerbLabel { verb }).observe(seconds);
        if code == Some(StatusCode::CONFLICT) {
            self.conflicts.inc();
        }
    }
}

/// Returns the verb and the resource of a request, as a role names them: `patch` and `mxjobs.kubeflow.org/status`.
fn verb_and_resource(method: &Method, uri: &Uri) -> (&'static str, String) {
    let segments: Vec<&str> = uri.path().split('/').filter(|s| !s.is_empty()).collect();
    let (group, path) = match &segments[..] {
        ["api", _, path @ ..] => ("", path),
        ["apis", group, _, path @ ..] => (*group, path),
        _ => ("", &[][..]),
    };
    let path = match path {
        ["namespaces", _, path @ ..] if !path.is_empty() => path,
        path => path,
    };
    let query = uri.query().unwrap_or_default();
    let is_watch = query
        .split('&')
        .any(|part| matches!(part, "watch=true" | "watch=1" | "watch"));
    let verb = match *method {
        Method::GET if is_watch => "watch",
        Method::GET if path.len() < 2 => "list",
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "other",
    };
    let Some(plural) = path.first() else {
        return (verb, "other".to_owned());
    };
    let dot = if group.is_empty() { "" } else { "." };
    let subresource = path.get(2).map(|sub| format!("/{sub}")).unwrap_or_default();
    (verb, format!("{plural}{dot}{group}{subresource}"))
}

impl Observer for ApiMetrics {
    type Request = (&'static str, String);

    fn request(&self, method: &Method, uri: &Uri) -> Result<Self::Request, BoxError> {
        Ok(verb_and_resource(method, uri))
    }

    fn response(&self, (verb, resource): Self::Request, sent: Instant, code: Option<StatusCode>) {
        self.record(verb, &resource, code, sent.elapsed().as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_verb_and_the_resource_of_its_rule() {
        let of = |method: Method, uri: &str| {
            let (verb, resource) = verb_and_resource(&method, &uri.parse().unwrap());
            format!("{verb} {resource}")
        };
        let jobs = "/apis/kubeflow.org/v1/namespaces/ns/mxjobs";
        assert_eq!(
            of(Method::GET, "/api/v1/pods?watch=true&timeoutSeconds=9"),
            "watch pods"
        );
        assert_eq!(of(Method::GET, "/api/v1/pods?limit=500"), "list pods");
        assert_eq!(of(Method::GET, "/api/v1/namespaces/ns/pods"), "list pods");
        assert_eq!(of(Method::GET, "/api/v1/namespaces/ns/pods/a"), "get pods");
        assert_eq!(of(Method::GET, "/api/v1/namespaces/ns"), "get namespaces");
        assert_eq!(of(Method::POST, "/api/v1/namespaces/ns/events"), "create events");
        assert_eq!(of(Method::GET, jobs), "list mxjobs.kubeflow.org");
        assert_eq!(
            of(Method::PATCH, &format!("{jobs}/a/status?fieldManager=x")),
            "patch mxjobs.kubeflow.org/status"
        );
        assert_eq!(
            of(Method::DELETE, &format!("{jobs}/a")),
            "delete mxjobs.kubeflow.org"
        );
        assert_eq!(of(Method::GET, "/version"), "list other");
    }

    #[test]
    fn a_conflict_counts_as_a_request_and_on_its_own() {
        let metrics = ApiMetrics::default();
        metrics.record("patch", "pods", Some(StatusCode::OK), 0.1);
        metrics.record("patch", "pods", Some(StatusCode::CONFLICT), 0.1);
        metrics.record("patch", "pods", None, 30.0);
        assert_eq!(metrics.conflicts.get(), 1);
        for code in ["200", "409", "error"] {
            let labels = RequestLabels {
                verb: "patch",
                resource: "pods".to_owned(),
                code: code.to_owned(),
            };
            assert_eq!(metrics.requests.get_or_create(&labels).get(), 1, "{code}");
        }
    }
}
