//! What jobs get, for reviewers to read: `snapshots/` in the repository.

use training_job::testing::snapshots;
use training_job_mxnet::MXJob;

/// The jobs that people start from.
#[test]
fn examples() {
    snapshots::<MXJob>(
        env!("CARGO_MANIFEST_DIR"),
        "../../examples/mxnet",
        "../../snapshots/mxnet/examples",
    );
}

/// Every topology, mode, policy and odd form.
#[test]
fn cases() {
    snapshots::<MXJob>(
        env!("CARGO_MANIFEST_DIR"),
        "../../operator/tests/cases",
        "../../snapshots/mxnet/cases",
    );
}

/// The shapes of the stand-alone mxnet-operator. Its first is refused.
#[test]
fn legacy() {
    snapshots::<MXJob>(
        env!("CARGO_MANIFEST_DIR"),
        "../../examples/legacy",
        "../../snapshots/mxnet/legacy",
    );
}
