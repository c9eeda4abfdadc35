//! `--gang-scheduler-name`, as the operator has it.

use training_job::GangScheduler;

/// The gang scheduler of the cluster.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct GangFlag {
    /// The gang scheduler, as the operator is given it: volcano, or the name of one with the coscheduling plugin.
    #[arg(long, value_name = "NAME", default_value = "")]
    gang_scheduler_name: String,
}

impl GangFlag {
    /// The scheduler; none if the flag is not given.
    pub(crate) fn scheduler(&self) -> Option<GangScheduler> {
        GangScheduler::named(&self.gang_scheduler_name)
    }
}
