//! The jobs of the repository: the definition accepts them, and they render as `snapshots/`, which reviewers read.

use training_job_pytorch::PyTorchJob;
use training_job_testbed::check_jobs;

#[test]
fn examples() {
    check_jobs::<PyTorchJob>("examples/pytorch", "pytorch/examples");
}
