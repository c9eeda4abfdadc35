//! The jobs of the repository: the definition accepts them, and they render as `snapshots/`, which reviewers read.

use training_job_mxnet::MXJob;
use training_job_testbed::{check_jobs, repository};
use training_job_testing::snapshots;

#[test]
fn examples() {
    check_jobs::<MXJob>("examples/mxnet", "mxnet/examples");
}

/// Every topology, mode, policy and unusual form.
#[test]
fn cases() {
    check_jobs::<MXJob>("operator/tests/cases", "mxnet/cases");
}

/// The shapes of the stand-alone mxnet-operator. Its first shape is invalid.
#[test]
fn legacy() {
    let jobs = "examples/legacy";
    snapshots::<MXJob>(repository(), jobs, "snapshots/mxnet/legacy");
}
