//! Compares the rendered objects with `snapshots/` in the repository, which reviewers read.

use training_job_mxnet::MXJob;
use training_job_testing::snapshots;

#[test]
fn examples() {
    snapshots::<MXJob>(
        env!("CARGO_MANIFEST_DIR"),
        "../../examples/mxnet",
        "../../snapshots/mxnet/examples",
    );
}

/// Every topology, mode, policy and unusual form.
#[test]
fn cases() {
    snapshots::<MXJob>(
        env!("CARGO_MANIFEST_DIR"),
        "../../operator/tests/cases",
        "../../snapshots/mxnet/cases",
    );
}

/// The shapes of the stand-alone mxnet-operator. Its first shape is invalid.
#[test]
fn legacy() {
    snapshots::<MXJob>(
        env!("CARGO_MANIFEST_DIR"),
        "../../examples/legacy",
        "../../snapshots/mxnet/legacy",
    );
}
