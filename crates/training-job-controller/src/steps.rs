//! The data that each step of a reconcile passes to the next.

use std::sync::Arc;
use std::time::Duration;

use kube_follow::CallError;
use tokio::time::Instant;

use training_job::plan::ChildKind;
use training_job::plan::observed::Observed;

use super::answers::Answer;
use super::cache::children::OwnerRef;
use super::cache::stored_job::StoredJob;
use super::metrics::ErrorReason;
use super::quota_queue::Scope;

/// The words in the API server's response to a service for which there is no cluster IP.
const RANGE_IS_FULL: &str = "range is full";

/// Result of observe: the job and its children from the caches.
pub(super) struct Observation {
    pub(super) job: Arc<StoredJob>,
    pub(super) children: Arc<Observed>,
}

/// Result of apply: the completed actions in order, and the failed ones.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// True if the plan had actions on children.
    pub(super) acted: bool,
    /// The time when the creates and patches are due that were left out of the plan because it was too early for them.
    pub(super) deferred: Option<Instant>,
    pub(super) done: Vec<ChildAction>,
    pub(super) failures: Vec<ApplyFailure>,
    /// True if the job gave back what it had just created, because a quota refuses the rest.
    pub(super) gave_back: bool,
}

/// A completed action on the children of one kind, with their names.
#[derive(Debug)]
pub(super) struct ChildAction {
    pub(super) action: Action,
    pub(super) kind: ChildKind,
    pub(super) names: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Create,
    /// Add this operator's labels to an existing object that lacks them.
    Adopt,
    Patch,
    Delete,
}

/// A failed action on a child.
#[derive(Debug)]
pub(super) struct ApplyFailure {
    pub(super) action: Action,
    pub(super) kind: ChildKind,
    pub(super) name: String,
    pub(super) problem: ApplyError,
}

impl Applied {
    /// Adds the results of creating objects of one kind.
    pub(super) fn add_created(&mut self, kind: ChildKind, results: Vec<CallResult<CreateOutcome>>) {
        let (adopted, created) = results
            .into_iter()
            .partition::<Vec<_>, _>(|result| matches!(result, Ok((CreateOutcome::Adopted, _))));
        self.add(Action::Adopt, kind, adopted);
        self.add(Action::Create, kind, created);
    }

    /// Adds the results of the calls of one action and kind.
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
            self.done.push(ChildAction { action, kind, names });
        }
    }

    /// Returns true if this action was completed for any child.
    pub(super) fn has(&self, action: Action) -> bool {
        self.done.iter().any(|done| done.action == action)
    }
}

/// The result of a call with the name of its child: its outcome, or the error.
pub(super) type CallResult<T> = Result<(T, String), (String, ApplyError)>;

/// The way in which a child came to exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CreateOutcome {
    Created,
    /// Another client created the child for this job; it has this operator's labels now.
    Adopted,
}

/// The cause of a failed action on a child.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApplyError {
    /// An object that the job does not control has the name.
    #[error("the name is taken by an object that this job does not control ({})", controller_of(.0.as_ref()))]
    NameTaken(Option<OwnerRef>),
    /// The predecessor of that name is not gone yet.
    #[error("an object of that name is still being deleted")]
    StillThere,
    /// The object is a copy of one that does not exist.
    #[error("it is a copy of {0} {1}, which does not exist; create that, and the job goes on")]
    NoOriginal(&'static str, String),
    /// The child was patched, but the stored object lacks the change.
    #[error(
        "the API server accepted the change but stored something else; look for an admission webhook or policy that \
         changes it back, or a definition without the field"
    )]
    NotKept,
    /// The cached object is outdated. Either the object is gone, or it exists and the cache dropped the response
    /// because a list or the watch had overtaken it. This also occurs after a restore of the server from a backup,
    /// until the next list.
    #[error("the cached object is out of date")]
    NotCached,
    #[error(transparent)]
    Call(#[from] CallError),
    /// Not tried, because an earlier call of the same kind failed.
    #[error("skipped after an earlier failure")]
    NotTried,
}

fn controller_of(owner: Option<&OwnerRef>) -> String {
    match owner {
        Some(owner) => format!("{} {} does", owner.kind, owner.name),
        None => "it has no controller".to_owned(),
    }
}

impl ApplyFailure {
    /// Returns true if the API server refuses the change of the child, by a rule, a quota or a webhook for example. A server
    /// that is overloaded or does not respond refuses nothing, nor does one in which a deletion is overtaken.
    pub(super) fn is_refused(&self) -> bool {
        let is_refused = match &self.problem {
            ApplyError::NameTaken(_) | ApplyError::NotKept | ApplyError::NoOriginal(..) => true,
            ApplyError::Call(error) => match Answer::from(error) {
                Answer::Unknown => false,
                Answer::Conflict => self.action == Action::Create,
                _ => error.code() != Some(429),
            },
            ApplyError::StillThere | ApplyError::NotCached | ApplyError::NotTried => false,
        };
        is_refused || self.lacks_capacity()
    }

    /// Returns true if a quota or the range of cluster IPs is exhausted. Only the text of the response shows it.
    pub(super) fn lacks_capacity(&self) -> bool {
        let ApplyError::Call(error) = &self.problem else {
            return false;
        };
        let text = error.to_string();
        let is_conflict = error.code() == Some(409) && text.contains("resourcequotas");
        is_conflict || text.contains("exceeded quota") || text.contains(RANGE_IS_FULL)
    }

    /// Returns the extent of the limit that refuses the child of a job in this namespace.
    pub(super) fn scope(&self, namespace: &str) -> Scope {
        let is_cluster_wide = self.problem.to_string().contains(RANGE_IS_FULL);
        let namespace = if is_cluster_wide { "" } else { namespace };
        (namespace.to_owned(), self.kind)
    }

    /// Returns the cause of the failure, without the name of the child and without numbers. Replicas that are refused for the
    /// same cause one after the other have the same text.
    pub(super) fn cause(&self) -> String {
        let text = self.problem.to_string().replace(&self.name, "");
        text.chars().filter(|c| !c.is_ascii_digit()).collect()
    }
}

impl ApplyError {
    /// Returns the delay before the next call that the server requested, if any.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Call(error) => error.retry_after(),
            _ => None,
        }
    }

    /// Returns true if the server is away.
    pub(super) fn is_away(&self) -> bool {
        matches!(self, Self::Call(CallError::Away))
    }

    /// Returns the reason of a reconcile that failed with this error.
    pub(super) fn error_reason(&self) -> ErrorReason {
        match self {
            Self::NameTaken(_) => ErrorReason::NameTaken,
            Self::NoOriginal(..) => ErrorReason::Invalid,
            Self::StillThere | Self::NotCached | Self::NotTried => ErrorReason::Conflict,
            Self::NotKept => ErrorReason::NotStored,
            Self::Call(error) => Answer::from(error).error_reason(),
        }
    }

    /// Returns true if the child is refused for its own name or content, which lasts until the cause is fixed.
    pub(super) fn refuses_child(&self) -> bool {
        match self {
            Self::NameTaken(_) | Self::NotKept | Self::NoOriginal(..) => true,
            Self::Call(error) => Answer::from(error).refuses_child(),
            Self::StillThere | Self::NotCached | Self::NotTried => false,
        }
    }

    /// Returns true if calls for other children would fail as well.
    pub(super) fn fails_all(&self) -> bool {
        matches!(self, Self::Call(error) if Answer::from(error).fails_all())
    }
}

/// Result of report: the outcome of writing the status.
pub(super) enum StatusWrite {
    /// The status has not changed.
    NotNeeded,
    /// The status is stored.
    Stored,
    /// The server accepted the patch, but stored the old status.
    Ignored,
    /// The server refuses every status of this invalid job.
    Refused,
    /// The status will be written at this time.
    Deferred(Instant),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requested_retry_delay_is_returned() {
        let status = serde_json::json!({
            "status": "Failure", "message": "", "reason": "", "code": 429, "details": {"retryAfterSeconds": 7},
        });
        let error = kube::Error::Api(serde_json::from_value(status).unwrap());
        let busy = ApplyError::from(CallError::from(error));
        assert_eq!(busy.retry_after(), Some(Duration::from_secs(7)));
        assert_eq!(ApplyError::NotTried.retry_after(), None);
    }
}
