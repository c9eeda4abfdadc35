//! The answer of a kind to the failure of a replica.

use std::time::Duration;

use super::scope::Scope;
use super::topology::Role;
use crate::api::MAX_RESTARTS_IN_WINDOW;

/// The failure of a replica, for [`on_failure`](crate::TrainingJob::on_failure).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ReplicaFailure<'a> {
    /// The role of the replica.
    pub role: &'a Role<'a>,
    /// The index of the replica within its role, from 0.
    pub index: u32,
    /// The cause of the failure.
    pub cause: Cause,
    /// The reason in one word, of the container or the pod: `Error`, `OOMKilled`, `Evicted`, `PodDeleted`.
    pub reason: &'a str,
}

impl<'a> ReplicaFailure<'a> {
    /// Creates the failure of a replica, as for the test of a hook.
    pub const fn new(role: &'a Role<'a>, index: u32, cause: Cause, reason: &'a str) -> Self {
        Self {
            role,
            index,
            cause,
            reason,
        }
    }
}

/// The cause of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// A container ended with this exit code, which is not 0 unless the role is
    /// [always replaced](crate::RoleDefinition::always_replaced).
    Exited(i32),
    /// The kubelet could not start a container.
    NotStarted,
    /// The kubelet has restarted a container that had failed.
    RestartedByKubelet,
    /// The pod was evicted, or failed without a failed container.
    Disrupted,
    /// The pod is gone, or its deletion began before its container ended.
    Deleted,
}

/// A restart after a failure: what restarts, whether it counts, and when.
///
/// ```
/// use std::time::Duration;
/// use training_job::{Restart, Scope};
///
/// // A replica that asks to be queued again.
/// let again = Restart::of(Scope::Job).uncounted(20).after(Duration::from_secs(30));
/// assert_eq!((again.uncounted, again.pause), (Some(20), Duration::from_secs(30)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restart {
    /// The replicas that restart.
    pub scope: Scope,
    /// If set, the restart does not count against the limits of the run policy or of the role, but the job fails after
    /// this number of such restarts in an hour, 1 to 100.
    pub uncounted: Option<u32>,
    /// The time between the failure and the creation of new pods, at most 300 s. After several attempts that failed soon
    /// after their start, the pause is at least that of every job.
    pub pause: Duration,
}

impl Restart {
    /// The longest pause.
    pub const MAX_PAUSE: Duration = Duration::from_secs(300);

    /// Returns an immediate restart of this scope that counts against the limits of the job.
    pub const fn of(scope: Scope) -> Self {
        Self {
            scope,
            uncounted: None,
            pause: Duration::ZERO,
        }
    }

    /// Counts the restart against no limit but this one: after `in_an_hour` uncounted restarts for failures of the same
    /// role in an hour (1 to 100), the next one fails the job, so that no loop is endless.
    #[must_use]
    pub const fn uncounted(mut self, in_an_hour: u32) -> Self {
        self.uncounted = Some(match in_an_hour {
            0 => 1,
            _ if in_an_hour > MAX_RESTARTS_IN_WINDOW.unsigned_abs() => MAX_RESTARTS_IN_WINDOW.unsigned_abs(),
            _ => in_an_hour,
        });
        self
    }

    /// Creates the new pods this long after the failure; [`MAX_PAUSE`](Self::MAX_PAUSE) at most.
    #[must_use]
    pub const fn after(mut self, pause: Duration) -> Self {
        self.pause = if pause.as_secs() < Self::MAX_PAUSE.as_secs() {
            pause
        } else {
            Self::MAX_PAUSE
        };
        self
    }
}
