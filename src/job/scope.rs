//! The replicas that restart together.

use crate::api::RestartScope;

/// The replicas that restart together when one fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// Only the failed replica.
    Replica,
    /// All replicas of its role.
    Role,
    /// All replicas of its role, and of the roles of these classes.
    Roles(&'static [&'static str]),
    /// All replicas of the job.
    Job,
}

impl From<&RestartScope> for Scope {
    /// A word that the API does not define restarts only the replica.
    fn from(scope: &RestartScope) -> Self {
        match scope {
            RestartScope::Job => Self::Job,
            RestartScope::Role => Self::Role,
            RestartScope::Replica | RestartScope::Other(_) => Self::Replica,
        }
    }
}
