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

/// Apply: what was done, in that order, and what failed.
#[derive(Debug, Default)]
pub(super) struct Applied {
    pub(super) done: Vec<Done>,
    pub(super) failures: Vec<ApplyFailure>,
}

/// What was done to the children of one kind, by name.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) action: Action,
    pub(super) kind: ChildKind,
    pub(super) names: Vec<String>,
}

/// What is done to a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Create,
    /// It was there, without this operator's labels.
    Adopt,
    Patch,
    Delete,
}

/// A child to which it could not be done.
#[derive(Debug)]
pub(super) struct ApplyFailure {
    pub(super) action: Action,
    pub(super) kind: ChildKind,
    pub(super) name: String,
    pub(super) problem: ApplyError,
}

impl Applied {
    /// Adds what became of the objects of one kind that were to be made.
    pub(super) fn add_made(&mut self, kind: ChildKind, results: Vec<CallResult<Made>>) {
        let (adopted, created) = results
            .into_iter()
            .partition::<Vec<_>, _>(|result| matches!(result, Ok((Made::Adopted, _))));
        self.add(Action::Adopt, kind, adopted);
        self.add(Action::Create, kind, created);
    }

    /// Adds what became of the calls of one action and kind.
    pub(super) fn add<T>(&mut self, action: Action, kind: ChildKind, results: Vec<CallResult<T>>) {
        let mut names = Vec::new();
        for result in results {
            match result {
                Ok((_, name)) => names.push(name),
                Err((name, problem)) => self.failures.push(ApplyFailure {
                    action,
                    kind,
                    name,
                    problem,
                }),
            }
        }
        if !names.is_empty() {
            self.done.push(Done { action, kind, names });
        }
    }

    /// Whether this was done to any child.
    pub(super) fn has(&self, action: Action) -> bool {
        self.done.iter().any(|done| done.action == action)
    }
}

/// What became of a call: what it did and the name of the child that it was for, or that and what went wrong with it.
pub(super) type CallResult<T> = Result<(T, String), (String, ApplyError)>;

/// How a child came to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// By this operator.
    Created,
    /// By somebody else, for this job: it has this operator's labels now.
    Adopted,
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
    /// It was patched, and does not have what it was to have.
    #[error("the API server took the change and keeps something else")]
    NotKept,
    /// The cache does not have it as the server does: it is gone; or it is there and the job's own, and the cache did not
    /// take it from the answer, which a list or the watch had overtaken. So it is when a server was restored from a
    /// backup and is not listed again yet.
    #[error("the cache does not have the object as the API server does yet")]
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
            Self::NameTaken | Self::NotKept => true,
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
