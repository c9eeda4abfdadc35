//! Compares the rendered objects with `snapshots/` in the repository, which reviewers read.

use training_job_pytorch::PyTorchJob;
use training_job_testing::snapshots;

#[test]
fn examples() {
    snapshots::<PyTorchJob>(
        env!("CARGO_MANIFEST_DIR"),
        "../../examples/pytorch",
        "../../snapshots/pytorch/examples",
    );
}
