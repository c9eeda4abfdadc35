//! What jobs get, for reviewers to read: `snapshots/` in the repository.

use training_job::testing::snapshots;
use training_job_tensorflow::TFJob;

/// The jobs that people start from.
#[test]
fn examples() {
    snapshots::<TFJob>(
        env!("CARGO_MANIFEST_DIR"),
        "../../examples/tensorflow",
        "../../snapshots/tensorflow/examples",
    );
}

/// Every role, and the odd forms.
#[test]
fn cases() {
    snapshots::<TFJob>(
        env!("CARGO_MANIFEST_DIR"),
        "../../operator/tests/tensorflow",
        "../../snapshots/tensorflow/cases",
    );
}
