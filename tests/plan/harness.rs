//! The harnesses of the tests.

use training_job_testbed::ToyJob;

pub(crate) type PlanHarness = training_job_testbed::PlanHarness<ToyJob>;

pub(crate) trait Stories {
    /// Creates a harness with a job of these roles, such as `Scheduler=1 Worker=2:OnFailure`, and these fields of its
    /// run policy.
    fn train(roles: &str, run_policy: &str) -> Self;
}

impl Stories for PlanHarness {
    fn train(roles: &str, run_policy: &str) -> Self {
        Self::with(roles, &format!("runPolicy: {{{run_policy}}}"))
    }
}
