//! Compares the rendered objects with `snapshots/` in the repository, which reviewers read.

use training_job_mlkube::{MxJob, TfJob};
use training_job_testing::snapshots;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn examples() {
    let jobs = "../../examples/legacy";
    snapshots::<MxJob>(HERE, jobs, "../../snapshots/mlkube/mxjob/examples");
    snapshots::<TfJob>(HERE, jobs, "../../snapshots/mlkube/tfjob/examples");
}

/// Every field, and unusual forms.
#[test]
fn cases() {
    let jobs = "../../operator/tests/mlkube";
    snapshots::<MxJob>(HERE, jobs, "../../snapshots/mlkube/mxjob/cases");
    snapshots::<TfJob>(HERE, jobs, "../../snapshots/mlkube/tfjob/cases");
}
