//! The jobs of the repository: the definition accepts them, and they render as `snapshots/`, which reviewers read.

use training_job_tensorflow::TFJob;
use training_job_testbed::check_jobs;

#[test]
fn examples() {
    check_jobs::<TFJob>("examples/tensorflow", "tensorflow/examples");
}

/// Every role, and unusual forms.
#[test]
fn cases() {
    check_jobs::<TFJob>("operator/tests/tensorflow", "tensorflow/cases");
}
