//! Settings of the operator that bear on every job.

use std::time::Duration;

use crate::api::RestartScope;

/// The operator's own settings that bear on every job.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What restarts together with a failed replica where the job does not say; the kind of job
    /// decides if unset.
    pub restart_scope: Option<RestartScope>,
    /// How long a success is held while replicas that do not decide still run: the processes of a
    /// cluster that has done its work end within a moment of each other. Default: one second.
    pub linger: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            restart_scope: None,
            linger: Duration::from_secs(1),
        }
    }
}
