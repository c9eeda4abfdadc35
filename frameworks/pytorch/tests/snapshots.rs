//! What jobs get, for reviewers to read: `snapshots/` in the repository.

use training_job::testing::snapshots;
use training_job_pytorch::PyTorchJob;

/// The jobs that people start from.
#[test]
fn examples() {
    snapshots::<PyTorchJob>(
        env!("CARGO_MANIFEST_DIR"),
        "../../examples/pytorch",
        "../../snapshots/pytorch/examples",
    );
}
