//! Errors of calls to an API server as sentences.

use anyhow::anyhow;
use kube::api::ApiResource;

/// Returns the text of a cause. For an error of kube it is the message of the API server, or what the client reports
/// about the connection, without kube's wrapping.
pub(crate) fn text(cause: &(dyn std::error::Error + 'static)) -> String {
    match cause.downcast_ref::<kube::Error>() {
        Some(kube::Error::Service(error)) => error.to_string(),
        Some(error) if is_unserved(error) => "the API server does not serve this resource".to_owned(),
        Some(kube::Error::Api(status)) if !status.message.is_empty() => status.message.clone(),
        _ => cause.to_string(),
    }
}

/// Returns the error of a call, with a remedy if it is about rights.
pub fn explained(error: kube::Error, verb: &str, resource: &str) -> anyhow::Error {
    match &error {
        kube::Error::Api(status) if status.code == 403 => anyhow!(
            "you are not allowed to {verb} {resource}: {}; the command's --help lists the rights that it needs",
            status.message
        ),
        kube::Error::Api(status) if status.code == 401 => anyhow!(text(&error)),
        kube::Error::Service(_) => anyhow!(text(&error)),
        _ => anyhow!("{verb} {resource}: {}", text(&error)),
    }
}

/// Returns true if the server does not serve the resource of a request. It then responds with plain text, from which kube
/// makes a status with another reason than that of a missing object.
pub(crate) fn is_unserved(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404 && status.reason != "NotFound")
}

/// Returns the problem of a kind that the server does not serve, with its remedy.
pub(crate) fn unserved(resource: &ApiResource) -> String {
    format!(
        "the cluster does not serve {}.{}; install its definition, which `crd --kind {}` of the operator's program prints",
        resource.plural, resource.group, resource.kind
    )
}
