//! The meaning of each response of the API server, by the kind of call.
//!
//! | response | create a child | patch an object | delete a child | write the status, delete the job |
//! |---|---|---|---|---|
//! | 404 [`NotFound`](Answer::NotFound) | failed for all children: the namespace or the kind is gone | the watch reports its deletion | if it names the child: already deleted | uncertain: read the job again |
//! | 409 [`AlreadyExists`](Answer::AlreadyExists) | read its owner: ours is a success if the cache takes it, a predecessor's will be deleted, any other keeps the name | – | – | uncertain |
//! | 409 [`Conflict`](Answer::Conflict) | this child is refused | another object has the name now; the watch delivers it | read who has the name now | uncertain: the cache is stale, or another writer came first |
//! | 422 [`Invalid`](Answer::Invalid) | this child is refused | this object is refused | failed | nothing was written; for an invalid job, no retry until an edit |
//! | 400, 413 [`Rejected`](Answer::Rejected) | this child is refused | this object is refused | failed | nothing was written |
//! | 401, 403, 429, other 4xx [`Denied`](Answer::Denied) | failed for all children | failed for all objects of the kind | failed for all children | nothing was written |
//! | 5xx, a timeout, no connection [`Unknown`](Answer::Unknown) | failed for all children; the next reconcile observes the outcome | the same | the same | uncertain |
//!
//! A child that is refused waits for its backoff or an edit of the spec (`rate_limit.rs`). A failure for all stops further
//! calls of the same reconcile (`apply.rs`). After a `Retry-After` (429, 503), no call is made for the job until then
//! (`requeue.rs`). While the server is away, calls wait at the gate of `kube-follow`, and their failures cost the job no
//! backoff. Only lists and watches get 410; `kube-follow` then lists again.

use kube_follow::CallError;

use super::metrics::ErrorReason;

/// An error response of the API server, or a missing response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// 404: the object, its namespace or its kind does not exist.
    NotFound,
    /// 409, because an object of that name exists.
    AlreadyExists,
    /// 409 for another reason: a precondition, or a quota that other clients use too.
    Conflict,
    /// 422: the object breaks a rule of its schema or of its kind.
    Invalid,
    /// 400 or 413: the object cannot be decoded, or is too large.
    Rejected,
    /// Any other 4xx: the call was not carried out, regardless of its object.
    Denied,
    /// It is unknown whether the call was carried out.
    Unknown,
}

impl From<&CallError> for Answer {
    fn from(error: &CallError) -> Self {
        match error.code() {
            Some(404) => Self::NotFound,
            Some(409) if error.already_exists() => Self::AlreadyExists,
            Some(409) => Self::Conflict,
            Some(422) => Self::Invalid,
            Some(400 | 413) => Self::Rejected,
            Some(400..500) => Self::Denied,
            _ => Self::Unknown,
        }
    }
}

impl Answer {
    /// Returns true if a child is refused for its own name or content, which lasts until the cause is fixed.
    pub(super) fn refuses_child(self) -> bool {
        matches!(
            self,
            Self::AlreadyExists | Self::Conflict | Self::Invalid | Self::Rejected
        )
    }

    /// Returns the reason of a reconcile that failed with this response.
    pub(super) fn error_reason(self) -> ErrorReason {
        match self {
            Self::NotFound | Self::Conflict => ErrorReason::Conflict,
            Self::AlreadyExists => ErrorReason::NameTaken,
            Self::Invalid | Self::Rejected => ErrorReason::Invalid,
            Self::Denied => ErrorReason::Denied,
            Self::Unknown => ErrorReason::NoResponse,
        }
    }

    /// Returns true if a call for another object would fail as well. A quota that rejects one object also rejects the
    /// next, and a server that does not respond should not get a thousand calls.
    pub(super) fn fails_all(self) -> bool {
        !self.refuses_child()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16, reason: &str) -> Answer {
        let status = serde_json::json!({
            "status": "Failure", "message": "", "reason": reason, "code": code,
        });
        let error = kube::Error::Api(serde_json::from_value(status).unwrap());
        Answer::from(&CallError::from(error))
    }

    #[test]
    fn each_code_has_the_meaning_in_the_table() {
        for (code, reason, meaning, refuses_child) in [
            (400, "BadRequest", Answer::Rejected, true),
            (401, "Unauthorized", Answer::Denied, false),
            (403, "Forbidden", Answer::Denied, false),
            (404, "NotFound", Answer::NotFound, false),
            (409, "AlreadyExists", Answer::AlreadyExists, true),
            (409, "Conflict", Answer::Conflict, true),
            (413, "RequestEntityTooLarge", Answer::Rejected, true),
            (422, "Invalid", Answer::Invalid, true),
            (429, "TooManyRequests", Answer::Denied, false),
            (500, "InternalError", Answer::Unknown, false),
            (503, "ServiceUnavailable", Answer::Unknown, false),
        ] {
            assert_eq!(answer(code, reason), meaning, "{code} {reason}");
            assert_eq!(meaning.refuses_child(), refuses_child, "{code}");
            assert_ne!(meaning.fails_all(), refuses_child, "{code}");
        }
        let late = CallError::Timeout(std::time::Duration::from_secs(1));
        assert_eq!(Answer::from(&late), Answer::Unknown);
    }
}
