//! Compares the rendered objects with `snapshots/` in the repository, which reviewers read.

use training_job_tensorflow::TFJob;
use training_job_testing::snapshots;

#[test]
fn examples() {
    snapshots::<TFJob>(
        env!("CARGO_MANIFEST_DIR"),
        "../../examples/tensorflow",
        "../../snapshots/tensorflow/examples",
    );
}

/// Every role, and unusual forms.
#[test]
fn cases() {
    snapshots::<TFJob>(
        env!("CARGO_MANIFEST_DIR"),
        "../../operator/tests/tensorflow",
        "../../snapshots/tensorflow/cases",
    );
}
