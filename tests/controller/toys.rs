//! Simulations begin with one of these.

use serde_json::Value;
use training_job_simulation::faults::PodFate;
use training_job_simulation::job::{self, JobType};
use training_job_simulation::simulation::{Setup, Simulation};

/// A cluster with nodes and an operator of ToyJobs; `pod_fates` says what becomes of a pod, by its name and attempt.
pub(crate) fn simulate(pod_fates: impl Fn(&str, u32) -> PodFate + Send + Sync + 'static) -> Simulation {
    let mut sim = without_operator(pod_fates);
    sim.start();
    sim
}

/// A cluster with nodes.
pub(crate) fn without_operator(
    pod_fates: impl Fn(&str, u32) -> PodFate + Send + Sync + 'static,
) -> Simulation {
    Simulation::with_setup(Setup::toyjobs(pod_fates))
}

/// A job with so many replicas of each role, all of restart policy ExitCode.
pub(crate) fn toy_job(name: &str, roles: &[(&str, i32)]) -> Value {
    job::new(JobType::Toy, name, roles, "ExitCode")
}
