//! What each step of a reconcile hands to the next.

use std::sync::Arc;
use std::time::Duration;

use kube_follow::CallError;
use tokio::time::Instant;

use crate::plan::ChildKind;
use crate::plan::observed::Observed;

use super::answers::Answer;
use super::cache::stored_job::StoredJob;

/// Observe: what a reconcile starts from.
pub(super) struct Observation<J> {
    pub(super) job: Arc<StoredJob<J>>,
    pub(super) children: Arc<Observed>,
}

/// Apply: what was done, by name, and what failed.
#[derive(Debug, Default)]
pub(super) struct Applied {
    pub(super) created_pods: Vec<String>,
    pub(super) created_services: Vec<String>,
    pub(super) deleted_pods: Vec<String>,
    pub(super) deleted_services: Vec<String>,
    pub(super) failures: Vec<ApplyFailure>,
}

/// A child that could not be created or deleted.
#[derive(Debug)]
pub(super) struct ApplyFailure {
    pub(super) kind: ChildKind,
    pub(super) creating: bool,
    pub(super) name: String,
    pub(super) problem: ApplyError,
}

/// Why it could not.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApplyError {
    /// The name belongs to somebody else's object.
    #[error("the name is taken by an object that this job does not control")]
    NameTaken,
    /// The predecessor of that name has not gone yet.
    #[error("an object of that name is still being deleted")]
    StillThere,
    /// It is there and the job's own, and the cache did not take it from the answer, which a list or the watch had
    /// overtaken. So it is when a server was restored from a backup and is not listed again yet.
    #[error("the object is there already, but not in the cache yet")]
    NotCached,
    /// The call failed.
    #[error("{}", .0.message())]
    Call(#[from] CallError),
    /// Not tried, since a call of the same kind before it failed.
    #[error("not tried after an earlier failure")]
    NotTried,
}

impl ApplyError {
    /// How long the server asks to be left alone, if it does.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Call(error) => error.retry_after(),
            _ => None,
        }
    }

    /// Whether the child is refused for its own name or content, and will be until somebody does something about it.
    pub(super) fn refuses_child(&self) -> bool {
        match self {
            Self::NameTaken => true,
            Self::Call(error) => Answer::from(error).refuses_child(),
            Self::StillThere | Self::NotCached | Self::NotTried => false,
        }
    }

    /// Whether calls for other children would fail as well.
    pub(super) fn fails_all(&self) -> bool {
        matches!(self, Self::Call(error) if Answer::from(error).fails_all())
    }
}

/// Report: what became of the plan's status.
pub(super) enum Written {
    /// It has not changed.
    Nothing,
    /// It is stored.
    Now,
    /// The server took it and stored what it had.
    Unchanged,
    /// The server refuses every status of a job like this.
    Refused,
    /// It will be written then.
    Later(Instant),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_left_alone_as_long_as_it_asks_for() {
        let status = serde_json::json!({
            "status": "Failure", "message": "", "reason": "", "code": 429, "details": {"retryAfterSeconds": 7},
        });
        let error = kube::Error::Api(serde_json::from_value(status).unwrap());
        let busy = ApplyError::from(CallError::from(error));
        assert_eq!(busy.retry_after(), Some(Duration::from_secs(7)));
        assert_eq!(ApplyError::NotTried.retry_after(), None);
    }
}
