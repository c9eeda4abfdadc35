//! What jobs get, for reviewers to read: `snapshots/` in the repository.

use training_job::testing::snapshots;
use training_job_mlkube::{MxJob, TfJob};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// The jobs that people start from.
#[test]
fn examples() {
    let jobs = "../../examples/legacy";
    snapshots::<MxJob>(HERE, jobs, "../../snapshots/mlkube/mxjob/examples");
    snapshots::<TfJob>(HERE, jobs, "../../snapshots/mlkube/tfjob/examples");
}

/// Every field, and the odd forms.
#[test]
fn cases() {
    let jobs = "../../operator/tests/mlkube";
    snapshots::<MxJob>(HERE, jobs, "../../snapshots/mlkube/mxjob/cases");
    snapshots::<TfJob>(HERE, jobs, "../../snapshots/mlkube/tfjob/cases");
}
