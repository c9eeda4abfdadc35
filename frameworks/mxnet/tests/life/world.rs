//! Stories of MXJobs begin with one of these.

use training_job_mxnet::MXJob;

pub(crate) type World = training_job_testing::World<MXJob>;

/// `roles` are such as `Scheduler=1 Worker=2:OnFailure`.
pub(crate) trait Stories {
    /// A training job in the nested shape.
    fn train(roles: &str, run_policy: &str) -> Self;

    /// A tuning job.
    fn tune(roles: &str, run_policy: &str) -> Self;

    /// A training job in the inline shape.
    fn inline(roles: &str, field: &str) -> Self;
}

impl Stories for World {
    fn train(roles: &str, run_policy: &str) -> Self {
        Self::with(roles, &format!("jobMode: MXTrain\nrunPolicy: {{{run_policy}}}"))
    }

    fn tune(roles: &str, run_policy: &str) -> Self {
        Self::with(roles, &format!("jobMode: MXTune\nrunPolicy: {{{run_policy}}}"))
    }

    fn inline(roles: &str, field: &str) -> Self {
        Self::with(roles, &format!("jobMode: MXTrain\n{field}"))
    }
}
