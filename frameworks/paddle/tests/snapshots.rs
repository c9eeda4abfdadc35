//! What jobs get, for reviewers to read: `snapshots/` in the repository.

use training_job::testing::snapshots;
use training_job_paddle::PaddleJob;

/// The jobs that people start from.
#[test]
fn examples() {
    snapshots::<PaddleJob>(
        env!("CARGO_MANIFEST_DIR"),
        "../../examples/paddle",
        "../../snapshots/paddle/examples",
    );
}
