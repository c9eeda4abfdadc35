//! The jobs of the repository: the definition accepts them, and they render as `snapshots/`, which reviewers read.

use training_job_paddle::PaddleJob;
use training_job_testbed::check_jobs;

#[test]
fn examples() {
    check_jobs::<PaddleJob>("examples/paddle", "paddle/examples");
}
