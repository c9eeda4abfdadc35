//! The points in a job's life that conditions and events report, and their sentences.

/// A point in a job's life that conditions and events report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Milestone<'a> {
    /// The controller has seen the job.
    Created,
    /// The replicas that decide the job run.
    Running,
    /// The job has ended well.
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
    /// `count` replicas of `role` failed for good.
    Failed {
        /// The role of the replica that failed first.
        role: &'a str,
        /// How many of the role's replicas failed.
        count: usize,
    },
    /// A replica of `role` ended with an exit code that its policy takes as final.
    FailedPermanently {
        /// The role of the replica that failed first.
        role: &'a str,
    },
    /// A replica of `role` failed, and a rule of the job's failure policy fails the job for it.
    FailedByRule {
        /// The role of the replica that failed first.
        role: &'a str,
    },
    /// One more restart would exceed `backoffLimit`, or `maxRestarts` of the failure policy.
    BackoffLimit,
    /// `activeDeadlineSeconds` have passed.
    Deadline,
}

impl Milestone<'_> {
    /// The Go operator's words for a job `name` of kind `kind`.
    pub fn describe(&self, kind: &str, name: &str) -> String {
        match self {
            Self::Created => format!("{kind} {name} is created."),
            Self::Running => format!("{kind} {name} is running."),
            Self::Succeeded => format!("{kind} {name} is successfully completed."),
            Self::Suspended => format!("{kind} {name} is suspended."),
            Self::Resumed => format!("{kind} {name} is resumed."),
            Self::Restarting { role } => {
                format!("job {name} is restarting because {role} replica(s) failed.")
            }
            Self::Failed { role, count } => {
                format!("{kind} {name} is failed because {count} {role} replica(s) failed.")
            }
            Self::FailedPermanently { role } => {
                format!("job \"{name}\" is failing because \"{role}\" replica(s) failed.")
            }
            Self::FailedByRule { role } => {
                format!(
                    "{kind} {name} has failed because a rule of its failure policy says so of a failed {role}."
                )
            }
            Self::BackoffLimit => {
                format!("Job {name} has failed because it has reached the specified backoff limit")
            }
            Self::Deadline => {
                format!("Job {name} has failed because it was active longer than specified deadline")
            }
        }
    }

    /// The same where it says "running" and "completed" of the job with its namespace, as it does of a job without a master.
    pub fn describe_with_namespace(&self, kind: &str, namespace: &str, name: &str) -> String {
        match self {
            Self::Running => format!("{kind} {namespace}/{name} is running."),
            Self::Succeeded => format!("{kind} {namespace}/{name} successfully completed."),
            other => other.describe(kind, name),
        }
    }
}
