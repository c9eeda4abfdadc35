//! The jobs of the repository: the definition accepts them, and they render as `snapshots/`, which reviewers read.

use training_job_jax::JAXJob;
use training_job_testbed::check_jobs;

#[test]
fn examples() {
    check_jobs::<JAXJob>("examples/jax", "jax/examples");
}
