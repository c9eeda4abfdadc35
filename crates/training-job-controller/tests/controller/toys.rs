//! Creates the simulations of the tests.

use serde_json::Value;
use training_job_simulation::faults::PodFate;
use training_job_simulation::simulation::{Setup, Simulation};
use training_job_simulation::world::job::{self, JobType};

/// Creates a cluster with nodes and an operator of ToyJobs. `pod_fates` returns the fate of a pod by its name and
/// attempt.
pub(crate) fn simulate(pod_fates: impl Fn(&str, u32) -> PodFate + Send + Sync + 'static) -> Simulation {
    let mut sim = without_operator(pod_fates);
    sim.start();
    sim
}

/// Creates a cluster with nodes and no operator.
pub(crate) fn without_operator(
    pod_fates: impl Fn(&str, u32) -> PodFate + Send + Sync + 'static,
) -> Simulation {
    Simulation::with_setup(Setup::toyjobs(pod_fates))
}

/// Returns a job with these roles and numbers of replicas, all with restart policy ExitCode.
pub(crate) fn toy_job(name: &str, roles: &[(&str, i32)]) -> Value {
    job::new(JobType::Toy, name, roles, "ExitCode")
}
