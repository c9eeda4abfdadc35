//! One API call: its timeout and its errors.

use std::future::Future;
use std::time::Duration;

use kube::core::Status;
use tokio::time::timeout;

use crate::backoff::MAX_WAIT;

/// The error of an API call without a usable response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The server rejected the request, or could not be reached.
    #[error("{}", message(.0))]
    Api(#[source] kube::Error),
    /// No response within this time. The server may or may not have carried out the request.
    #[error("no response within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// The server is away, and the client has a [`Gate`](crate::Gate). The server may have carried out the request, if the
    /// connection was lost during the call. Retry at once, because the next call waits until the server is back.
    #[error("{}", Away)]
    Away,
}

impl From<kube::Error> for CallError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Service(cause) if cause.is::<Away>() => Self::Away,
            other => Self::Api(other),
        }
    }
}

impl CallError {
    /// Returns the HTTP status code, if the server sent a response.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Api(kube::Error::Api(status)) => Some(status.code),
            _ => None,
        }
    }

    /// Returns true if an object could not be created because an object of this name exists. Other conflicts, such as
    /// a concurrent change of a quota, have the same code, 409, but another reason.
    pub fn already_exists(&self) -> bool {
        matches!(self, Self::Api(kube::Error::Api(status)) if status.reason == "AlreadyExists")
    }

    /// Returns the pause that the server requests before the next call, if any: whole seconds, at most 300 s.
    pub fn retry_after(&self) -> Option<Duration> {
        let Self::Api(kube::Error::Api(status)) = self else {
            return None;
        };
        let seconds = status.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(seconds.into()).min(MAX_WAIT))
    }

    /// Returns true if the server reports that the object `name` does not exist.
    ///
    /// A 404 without the object's name is about the path instead: the resource is not served at the moment, or a
    /// proxy in between has no route to it. Such a response is no evidence about the object.
    pub fn is_not_found(&self, name: &str) -> bool {
        let names = |status: &Status| status.details.as_ref().is_some_and(|d| d.name == name);
        matches!(self, Self::Api(kube::Error::Api(status)) if status.code == 404 && names(status))
    }
}

/// The error of a call that was not sent, or was lost, because the server is away.
#[derive(Debug, thiserror::Error)]
#[error("the API server is away")]
pub(crate) struct Away;

/// Returns the server's own message without the client's wrapping, or the client's if the server sent none. For a request
/// that did not reach the server, it is the innermost cause, such as a refused connection.
pub(crate) fn message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        kube::Error::Service(error) => format!("the request failed: {}", innermost(&**error)),
        other => other.to_string(),
    }
}

/// Returns the innermost cause of an error, such as a refused connection.
pub(crate) fn innermost(mut cause: &dyn std::error::Error) -> String {
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// The timeout of one API call; 30 s by default.
///
/// ```no_run
/// # async fn is_async(client: kube::Client) -> Result<(), kube_follow::CallError> {
/// use k8s_openapi::api::core::v1::Pod;
/// use kube::Api;
/// use kube_follow::CallTimeout;
///
/// let pods: Api<Pod> = Api::default_namespaced(client);
/// let pod = CallTimeout::default().call(pods.get("my-pod")).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CallTimeout(pub Duration);

impl Default for CallTimeout {
    fn default() -> Self {
        Self(Duration::from_secs(30))
    }
}

impl CallTimeout {
    /// Awaits an API call for at most this time. Must be called within a tokio runtime that has time enabled.
    ///
    /// # Errors
    /// The call's own error, or [`CallError::Timeout`]. A write that timed out may have been carried out: read the
    /// object before you retry the write.
    pub async fn call<T>(self, request: impl Future<Output = kube::Result<T>>) -> Result<T, CallError> {
        match timeout(self.0, request).await {
            Ok(response) => Ok(response?),
            Err(_) => Err(CallError::Timeout(self.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_without_a_message_has_the_clients_message() {
        let message = |message: &str| {
            let status = Status {
                message: message.to_owned(),
                reason: "Gone".to_owned(),
                ..Status::default()
            };
            CallError::from(kube::Error::Api(Box::new(status))).to_string()
        };
        assert_eq!(message("no"), "no");
        assert!(message("").contains("Gone"), "{}", message(""));
    }

    #[test]
    fn a_request_that_does_not_reach_the_server_has_its_innermost_cause() {
        #[derive(Debug, thiserror::Error)]
        #[error("client error (Connect)")]
        struct Outer(#[source] std::io::Error);
        let refused = std::io::Error::other("connection refused");
        let error = CallError::from(kube::Error::Service(Box::new(Outer(refused))));
        assert_eq!(error.to_string(), "the request failed: connection refused");
    }

    #[test]
    fn a_requested_pause_is_bounded() {
        let error = |details: serde_json::Value| {
            let status = serde_json::json!({
                "status": "Failure", "message": "", "reason": "", "code": 429, "details": details,
            });
            CallError::Api(kube::Error::Api(serde_json::from_value(status).unwrap()))
        };
        let after = |seconds| error(serde_json::json!({"retryAfterSeconds": seconds})).retry_after();
        assert_eq!(after(3), Some(Duration::from_secs(3)));
        assert_eq!(after(0), None);
        assert_eq!(after(1_000_000), Some(MAX_WAIT));
        assert_eq!(error(serde_json::Value::Null).retry_after(), None);
    }
}
