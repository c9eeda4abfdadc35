//! The jobs of the repository: the definition accepts them, and they render as `snapshots/`, which reviewers read.

use training_job_mlkube::{MxJob, TfJob};
use training_job_testbed::check_jobs;

#[test]
fn examples() {
    check_jobs::<MxJob>("examples/legacy", "mlkube/mxjob/examples");
    check_jobs::<TfJob>("examples/legacy", "mlkube/tfjob/examples");
}

/// Every field, and unusual forms.
#[test]
fn cases() {
    check_jobs::<MxJob>("operator/tests/mlkube", "mlkube/mxjob/cases");
    check_jobs::<TfJob>("operator/tests/mlkube", "mlkube/tfjob/cases");
}
