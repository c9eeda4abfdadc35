//! Errors of calls to an API server as sentences.

use anyhow::anyhow;
use kube::api::ApiResource;
use training_job_review::Failure;

/// Returns the text of a cause. For an error of kube it is the message of the API server, or what the client reports
/// about the connection, without kube's wrapping.
pub fn text_of(cause: &(dyn std::error::Error + 'static)) -> String {
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
        kube::Error::Api(status) if status.code == 401 => anyhow!(text_of(&error)),
        kube::Error::Service(_) => anyhow!(text_of(&error)),
        _ => anyhow!("{verb} {resource}: {}", text_of(&error)),
    }
}

/// Returns true if the server does not serve the resource of a request. It then responds with plain text, from which kube
/// makes a status with another reason than that of a missing object.
pub fn is_unserved(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404 && status.reason != "NotFound")
}

/// Returns the problem of a kind that the server does not serve, with its remedy.
pub fn unserved(resource: &ApiResource) -> String {
    format!(
        "the cluster does not serve {}.{}; install its definition, which `crd --kind {}` of the operator's program prints",
        resource.plural, resource.group, resource.kind
    )
}

/// Returns the failure of `what` with all causes of the error, except those that an earlier text contains.
pub fn failure_of(what: &str, error: &anyhow::Error) -> Failure {
    let mut text = String::new();
    for cause in error.chain().map(text_of) {
        match text.contains(&cause) {
            true => {}
            false if text.is_empty() => text = cause,
            false => text = format!("{text}: {cause}"),
        }
    }
    Failure::new(what, text)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_cause_that_the_text_contains_is_not_repeated() {
        let cause = || io::Error::from(io::ErrorKind::NotFound);
        let error = anyhow::Error::new(cause())
            .context("no config: entity not found")
            .context("no client");
        let failure = failure_of("local run", &error);
        assert_eq!(
            failure.to_string(),
            "local run: no client: no config: entity not found"
        );
        let failure = failure_of("local run", &cause().into());
        assert_eq!(failure.to_string(), "local run: entity not found");
    }
}
