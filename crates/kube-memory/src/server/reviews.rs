//! Reviews of access: everything is allowed, because a cluster has no authorization of its own.

use http::Method;
use serde_json::{Value, json};

use crate::request::{
    Request, body,
    failure::{ApiResult, Failure},
};
use crate::server::ServerResponse;

/// The reviews: group, plural, kind, and true if they are in a namespace.
pub(crate) const REVIEWS: [(&str, &str, &str, bool); 5] = [
    (
        "authentication.k8s.io",
        "selfsubjectreviews",
        "SelfSubjectReview",
        false,
    ),
    (
        "authorization.k8s.io",
        "localsubjectaccessreviews",
        "LocalSubjectAccessReview",
        true,
    ),
    (
        "authorization.k8s.io",
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
        false,
    ),
    (
        "authorization.k8s.io",
        "selfsubjectrulesreviews",
        "SelfSubjectRulesReview",
        false,
    ),
    (
        "authorization.k8s.io",
        "subjectaccessreviews",
        "SubjectAccessReview",
        false,
    ),
];

/// Answers a review. Returns `None` if the request is for another resource.
pub(crate) fn review(request: &Request) -> Option<ApiResult<ServerResponse>> {
    let path = &request.path;
    let is_review = |(group, plural, ..): &&(&str, &str, &str, bool)| {
        *group == path.group && *plural == path.plural && path.version == "v1" && path.name.is_none()
    };
    let (_, _, kind, _) = REVIEWS.iter().find(is_review)?;
    if request.method != Method::POST {
        return Some(Err(Failure::method_not_allowed()));
    }
    Some(body::parse(&request.body).map(|sent| ServerResponse::value(201, &answer(kind, &sent, path))))
}

fn answer(kind: &str, sent: &Value, path: &crate::request::Path) -> Value {
    let status = match kind {
        "SelfSubjectReview" => json!({"userInfo": {
            "username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"],
        }}),
        "SelfSubjectRulesReview" => json!({
            "incomplete": false,
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        }),
        _ => json!({"allowed": true}),
    };
    let mut review = json!({
        "kind": kind,
        "apiVersion": format!("{}/{}", path.group, path.version),
        "metadata": {"creationTimestamp": null},
        "status": status,
    });
    if let Some(spec) = sent.get("spec") {
        review["spec"] = spec.clone();
    }
    review
}
