//! The milestones of a job that conditions and events report, and their messages.

/// A milestone of a job that conditions and events report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Milestone<'a> {
    /// The controller has seen the job.
    Created,
    /// The replicas that determine the state of the job are running.
    Running,
    /// No replica is running any more; the job continues when some do.
    Interrupted,
    /// The job has succeeded.
    Succeeded,
    /// The job is suspended.
    Suspended,
    /// The job is resumed.
    Resumed,
    /// Replicas of `role` failed and are restarted.
    Restarting {
        /// The role of the replica that failed first.
        role: &'a str,
    },
    /// The whole job restarts because numbers of replicas changed that the environment of all replicas has.
    Resized {
        /// The changed numbers: `Worker 2 -> 4`.
        change: &'a str,
    },
    /// `count` replicas of `role` failed and are not restarted.
    Failed {
        /// The role of the replica that failed first.
        role: &'a str,
        /// The number of failed replicas of the role.
        count: usize,
    },
    /// A replica of `role` ended with an exit code that its policy treats as permanent.
    FailedPermanently {
        /// The role of the replica that failed first.
        role: &'a str,
    },
    /// A replica of `role` failed, and a rule of the job's failure policy fails the job.
    FailedByRule {
        /// The role of the replica that failed first.
        role: &'a str,
    },
    /// One more restart would exceed `backoffLimit`, or `maxRestarts` of the failure policy.
    BackoffLimit,
    /// `activeDeadlineSeconds` have passed.
    Deadline,
    /// The job runs and makes no progress.
    Stalled {
        /// The replica, its last line and the time: `primes-worker-0 has printed nothing for 30 min`.
        why: &'a str,
    },
    /// The job makes progress again.
    Advancing,
    /// The job made no progress for too long.
    FailedByStall,
}

impl Milestone<'_> {
    /// Returns the Go operator's message for a job `name` of kind `kind`.
    pub fn describe(&self, kind: &str, name: &str) -> String {
        match self {
            Self::Created => format!("{kind} {name} is created."),
            Self::Running => format!("{kind} {name} is running."),
            Self::Interrupted => format!("{kind} {name} is not running: none of its replicas runs."),
            Self::Succeeded => format!("{kind} {name} is successfully completed."),
            Self::Suspended => format!("{kind} {name} is suspended."),
            Self::Resumed => format!("{kind} {name} is resumed."),
            Self::Restarting { role } => {
                format!("job {name} is restarting because {role} replica(s) failed.")
            }
            Self::Resized { change } => {
                format!(
                    "{kind} {name} is restarting because its number of replicas changed ({change}), and the environment \
                     of its replicas depends on that number."
                )
            }
            Self::Failed { role, count } => {
                format!("{kind} {name} is failed because {count} {role} replica(s) failed.")
            }
            Self::FailedPermanently { role } => {
                format!("job \"{name}\" is failing because \"{role}\" replica(s) failed.")
            }
            Self::FailedByRule { role } => {
                format!(
                    "{kind} {name} has failed because a rule of its failure policy matches a failed {role}."
                )
            }
            Self::BackoffLimit => {
                format!("Job {name} has failed because it has reached the specified backoff limit")
            }
            Self::Deadline => {
                format!("Job {name} has failed because it was active longer than specified deadline")
            }
            Self::Stalled { why } => format!("{kind} {name} is stalled: {why}."),
            Self::Advancing => format!("{kind} {name} makes progress again."),
            Self::FailedByStall => format!("{kind} {name} has failed because it was stalled."),
        }
    }

    /// Like [`describe`](Self::describe), but `Running` and `Succeeded` name the namespace, as in the Go operator for
    /// a job without a master.
    pub fn describe_with_namespace(&self, kind: &str, namespace: &str, name: &str) -> String {
        match self {
            Self::Running => format!("{kind} {namespace}/{name} is running."),
            Self::Succeeded => format!("{kind} {namespace}/{name} successfully completed."),
            other => other.describe(kind, name),
        }
    }
}
