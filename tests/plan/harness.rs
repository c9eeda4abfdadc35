//! The harnesses of the tests.

use training_job::{Settings, validate};
use training_job_testbed::{ELASTIC, ToyJob};

pub(crate) type PlanHarness = training_job_testbed::PlanHarness<ToyJob>;

/// A change of the cluster.
pub(crate) type Act = fn(&mut PlanHarness) -> &mut PlanHarness;

pub(crate) trait Stories {
    /// Creates a harness with a job of these roles, such as `Scheduler=1 Worker=2:OnFailure`, and these fields of its
    /// run policy.
    fn train(roles: &str, run_policy: &str) -> Self;

    /// Lets the replicas of the job come and go.
    fn elastic(self) -> Self;

    /// Returns the errors of the job; empty if it is valid.
    fn errors(&self) -> Vec<String>;
}

impl Stories for PlanHarness {
    fn train(roles: &str, run_policy: &str) -> Self {
        Self::with(roles, &format!("runPolicy: {{{run_policy}}}"))
    }

    fn elastic(mut self) -> Self {
        let annotations = self.job.metadata.annotations.get_or_insert_default();
        annotations.insert(ELASTIC.to_owned(), String::new());
        self
    }

    fn errors(&self) -> Vec<String> {
        let found = validate(&self.job, &Settings::default())
            .err()
            .unwrap_or_default();
        found.iter().map(ToString::to_string).collect()
    }
}
